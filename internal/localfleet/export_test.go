package localfleet

// Held is how many connections a link has, at both of its ends.
func Buffered(l *Link) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}
