package places

import "time"

// spent is for how long a tenant has had places beyond what is its part: half of the time
// of those that it shares. The zero value is that of one that had none.
type spent struct {
	much  time.Duration
	at    time.Time // when much was so
	waits bool      // somebody looks again once it may go on
}

// add counts a place that was had for some time, up to twice the burst: nobody waits for
// longer than that is long.
func (s *spent) add(had time.Duration, now time.Time, o Options) {
	before := now.Add(-had)
	if before.After(s.at) {
		s.forgive(before, o)
	}
	s.much = min(max(s.much+had-part(now.Sub(s.at), o), 0), 2*burst(o))
	s.at = now
}

// forgive takes off what has become its part since.
func (s *spent) forgive(now time.Time, o Options) {
	if s.much > 0 {
		s.much = max(s.much-part(now.Sub(s.at), o), 0)
	}
	s.at = now
}

// rest is how long the tenant has to wait; zero: not at all.
func (s *spent) rest(now time.Time, o Options) time.Duration {
	s.forgive(now, o)
	if s.much <= burst(o) {
		return 0
	}
	return 2*(s.much-burst(o))/time.Duration(o.Shared) + time.Millisecond
}

// burst is what may be had at once.
func burst(o Options) time.Duration { return o.Burst * time.Duration(o.Shared) }

// part is what a tenant may have for good in some time.
func part(in time.Duration, o Options) time.Duration { return in * time.Duration(o.Shared) / 2 }
