package interpreters

import (
	"errors"
	"sync"
	"time"

	"github.com/flotilla-io/flotilla/policies/interpreter/lua"
)

// slot is the least time between retries of one rule that used up its budget: that is a
// tenth of a core at most, however many objects the rule is asked about.
const slot = time.Second

// cooldown spreads the retries of one rule over time. The zero value is
// ready.
type cooldown struct {
	mu   sync.Mutex
	next time.Time
}

// spread returns err, with the time of the retry if the rule used up its budget.
func (p *cooldown) spread(err error, now time.Time) error {
	var spent *lua.BudgetError
	if !errors.As(err, &spent) {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next.Before(now) {
		p.next = now
	}
	p.next = p.next.Add(slot)
	return &costlyError{err, p.next.Sub(now)}
}

// costlyError is the error of a rule that used up its budget, with the time of the retry.
type costlyError struct {
	error
	after time.Duration
}

func (e *costlyError) Unwrap() error { return e.error }

// Costs returns when a rule that failed with err by using up its budget is to be
// asked again at the earliest; zero for what failed otherwise. The more objects
// cost it its budget, the longer.
func Costs(err error) time.Duration {
	var costly *costlyError
	if errors.As(err, &costly) {
		return costly.after
	}
	return 0
}
