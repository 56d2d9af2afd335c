// Swagger UI over our OpenAPI description; its requests carry the CSRF token as the pages' do.

const root = document.getElementById("reference");

SwaggerUIBundle({
  ...JSON.parse(root.dataset.settings),
  domNode: root,
  presets: [SwaggerUIBundle.presets.apis],
  requestInterceptor(request) {
    request.headers["X-CSRFToken"] = root.dataset.csrfToken;
    return request;
  },
});
