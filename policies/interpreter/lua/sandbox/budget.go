package sandbox

import (
	"fmt"
	"time"
)

// The default budgets. A script that reads an object of a hundred fields takes
// some hundred steps and some ten kilobytes.
const (
	defaultSteps  = 1_000_000
	defaultMemory = 16 << 20
	defaultTime   = 80 * time.Millisecond
)

// checkEvery is how many steps pass between two checks of the clock. A script
// that ends earlier is never stopped by it, however busy the machine is.
const checkEvery = 4096

// A BudgetError is the error of a script that was stopped because it used up a
// budget.
type BudgetError struct {
	// Budget is "steps", "memory" or "time".
	Budget string
	// Limit is the budget with its unit.
	Limit string
}

// Error returns a text with the budget that was used up.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("stopped: it took more than %s", e.Limit)
}

// budget is what one call has used of its budgets. Once one of them is used up it
// stays so: a script may catch the error, but its next instruction fails again.
type budget struct {
	opts    Options
	steps   int64
	next    int64 // number of steps at which check is called next
	bytes   int64
	started time.Time
	stopped error
}

// reset prepares the budget for a new call.
func (b *budget) reset() {
	b.steps, b.bytes, b.next, b.stopped = 0, 0, min(checkEvery, b.opts.Steps), nil
	if b.opts.Now != nil {
		b.started = b.opts.Now()
	}
}

// spend charges the budget, and reports whether it had enough left.
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
