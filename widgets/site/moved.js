// At an old address: a part that was asked for (#name) is on one of the new pages; else the page itself leads on.
{
  const places = JSON.parse(document.currentScript.dataset.places);
  const there = places[decodeURIComponent(location.hash.slice(1))];
  if (there) location.replace(there);
}
