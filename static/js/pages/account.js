/** The account's page: a new token is copied by a press. */

import { bindDialogs } from "../views/dialogs.js";

bindDialogs();
