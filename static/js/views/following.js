/** The timeline's buttons: follow the head of the run, and fit the whole. */

/** Returns what shows how it stands, for when the run has ended. */
export function bindFollowing(timeline, part) {
  const show = () => {
    const button = part("follow");
    button.classList.toggle("on", timeline.isFollowing);
    button.setAttribute("aria-pressed", String(timeline.isFollowing));
    button.disabled = !timeline.isGrowing;
  };
  timeline.addEventListener("follow", show);
  part("follow").addEventListener("click", () => timeline.follow(!timeline.isFollowing));
  part("fit").addEventListener("click", () => timeline.fit());
  show();
  return show;
}
