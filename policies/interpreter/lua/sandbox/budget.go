package sandbox

import (
	"fmt"
	"time"
)

// The budgets of production. A script that reads an object of a hundred fields
// takes some hundred steps and some ten kilobytes.
const (
	defaultSteps  = 1_000_000
	defaultMemory = 16 << 20
	defaultTime   = 80 * time.Millisecond
)

// checkEvery is how many steps pass between two looks at the clock. Scripts
// that are done earlier are never judged by it.
const checkEvery = 4096

// A BudgetError says that a script was stopped because it used up a budget.
type BudgetError struct {
	// Budget is "steps", "memory" or "time".
	Budget string
	// Limit of the budget, in words.
	Limit string
}

// Error says which budget was used up.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("stopped: it took more than %s", e.Limit)
}

// budget is what one call may still do. Once it is used up it stays so: whatever
// a script catches, its next instruction fails again.
type budget struct {
	opts    Options
	steps   int64
	next    int64 // steps at which check looks closer
	bytes   int64
	started time.Time
	stopped error
}

// reset starts a call.
func (b *budget) reset() {
	b.steps, b.bytes, b.next, b.stopped = 0, 0, min(checkEvery, b.opts.Steps), nil
	if b.opts.Now != nil {
		b.started = b.opts.Now()
	}
}

// spend takes from the budget, and reports whether there is enough.
func (b *budget) spend(steps, bytes int64) bool {
	b.steps += steps
	b.bytes += bytes
	if b.steps < b.next && b.bytes <= b.opts.Memory {
		return true
	}
	return b.check()
}

// check reports whether all budgets hold, and sets when to check again.
func (b *budget) check() bool {
	switch {
	case b.stopped != nil:
	case b.steps >= b.opts.Steps:
		b.stopped = &BudgetError{"steps", fmt.Sprintf("%d steps", b.opts.Steps)}
	case b.bytes > b.opts.Memory:
		b.stopped = &BudgetError{"memory", fmt.Sprintf("%d KiB of memory", b.opts.Memory>>10)}
	case b.opts.Now != nil && b.opts.Now().Sub(b.started) > b.opts.Time:
		b.stopped = &BudgetError{"time", b.opts.Time.String()}
	default:
		b.next = min(b.steps+checkEvery, b.opts.Steps)
		return true
	}
	b.next = 0
	return false
}
