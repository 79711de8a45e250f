package estimators

import (
	"sync"
	"time"
)

// outcome is what came of a question.
type outcome int

const (
	answered outcome = iota
	silent
	unknown
)

const (
	// failureThreshold is how many questions in a row without an answer open the breaker.
	failureThreshold = 3
	// shortestRest and longestRest are how long an estimator that does not answer is left alone.
	shortestRest, longestRest = time.Second, 30 * time.Second
)

// breaker leaves an estimator alone for a while that does not answer, so that those who decide
// do not wait for it each time. The zero value lets everything through.
type breaker struct {
	mu      sync.Mutex
	silence int           // questions in a row without an answer
	rest    time.Duration // how long it rests the next time; 0: the shortest
	until   time.Time     // when it is asked again
	trying  bool          // the one question after a rest is not answered yet
}

// enter reports whether a question may be asked. After a rest one is, before all others.
func (b *breaker) enter(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.silence < failureThreshold:
		return true
	case b.trying || now.Before(b.until):
		return false
	}
	b.trying = true
	return true
}

// leave says what came of a question that was let through.
func (b *breaker) leave(now time.Time, o outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trying = false
	switch o {
	case answered:
		b.silence, b.rest = 0, 0
	case silent:
		b.silence++
		if b.silence < failureThreshold || now.Before(b.until) {
			return // or it was asked before the rest began
		}
		b.rest = min(max(2*b.rest, shortestRest), longestRest)
		b.until = now.Add(b.rest)
	case unknown:
	}
}

// failing reports whether it does not answer.
func (b *breaker) failing() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.silence > 0
}

// inherit goes on where another breaker was: a new way to an estimator that is dead is no reason
// to wait for it again.
func (b *breaker) inherit(other *breaker) {
	other.mu.Lock()
	defer other.mu.Unlock()
	b.silence, b.rest, b.until = other.silence, other.rest, other.until
}
