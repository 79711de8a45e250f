package webhook

// Calls counts the questions that wait to be sent, and those under way.
func (w *Webhooks) Calls() (waiting, flying int) {
	rc := w.responses
	rc.mu.Lock()
	defer rc.mu.Unlock()
	for _, h := range rc.turn {
		waiting += len(h.waiting)
	}
	return waiting, rc.flying
}
