// Whether Python still answers, from what JupyterLab knows of its kernel. Elsewhere nothing is known, and nothing said.

const GONE = {
  restarted: 'Python was restarted or stopped, and this picture belongs to the one before: run the cell again. The picture stays as it was.',
  gone: 'The server no longer answers: start it again (make lab) and reload the page. The picture stays as it was.',
};

function watchKernel(model, tell) {
  const kernel = model.widget_manager?.kernel;
  if (!kernel?.statusChanged) return () => {};
  let over = false;
  const end = () => { over = true; tell('restarted'); };
  const status = (_, now) => { if (['restarting', 'autorestarting', 'terminating', 'dead'].includes(now)) end(); };
  const line = (_, now) => { if (!over && !kernel.isDisposed) tell(now === 'connected' ? '' : 'gone'); };
  kernel.statusChanged.connect(status);
  kernel.connectionStatusChanged.connect(line);
  kernel.disposed.connect(end);
  return () => {
    kernel.statusChanged.disconnect(status);
    kernel.connectionStatusChanged.disconnect(line);
    kernel.disposed.disconnect(end);
  };
}
