package informer

// Watches counts the kinds that are watched: those whose watch has seen the whole list and
// stands, and those of which that is not known. Kinds that are not served count nowhere.
func (v *Informer) Watches() (ready, pending int) {
	for _, w := range v.all() {
		w.mu.Lock()
		switch {
		case w.current.trusted():
			ready++
		case !w.unserved:
			pending++
		}
		w.mu.Unlock()
	}
	return ready, pending
}

// Rechecks counts the objects that are asked about again: those that wait for their time,
// and those that wait for, or are in, a read of the member.
func (v *Informer) Rechecks() (due, reading int) {
	l := v.recheck
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, of := range l.lines {
		reading += len(of.reading)
	}
	return len(l.due), reading
}
