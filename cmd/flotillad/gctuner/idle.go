package gctuner

import (
	"runtime/debug"
	"runtime/metrics"
	"time"

	"k8s.io/utils/clock"
)

const (
	// pollPeriod is how often ReleaseIdle reads the size of the heap.
	pollPeriod = time.Second
	// restful is how many bytes a program at rest allocates at most in that time.
	restful = 2 << 20
	// restfulPolls is how many polls in a row have to find a program at rest.
	restfulPolls = 2
	// busyPolls is for how many polls it keeps what it has after it gave something back: what
	// comes in bursts wants it again.
	busyPolls = 5
	// worthwhile is how many bytes have to be there to be given back: a collection costs
	// as much CPU time as what lives is large.
	worthwhile = 96 << 20
)

// The metrics of what was allocated so far, of what is held by objects, dead ones included,
// and of memory that the program has and does not use.
const (
	allocatedBytes = "/gc/heap/allocs:bytes"
	objectBytes    = "/memory/classes/heap/objects:bytes"
	freeBytes      = "/memory/classes/heap/free:bytes"
)

// ReleaseIdle gives memory that a burst has taken back to the machine seconds after it, and
// not again for five. What it returns ends it.
func ReleaseIdle(clk clock.WithTicker) (stop func()) {
	done := make(chan struct{})
	go func() {
		ticker := clk.NewTicker(pollPeriod)
		defer ticker.Stop()
		r := releaser{last: now(), since: busyPolls}
		for {
			select {
			case <-done:
				return
			case <-ticker.C():
				if r.rests(now()) {
					debug.FreeOSMemory()
				}
			}
		}
	}()
	return func() { close(done) }
}

// heap is what a heap is made of, in bytes.
type heap struct {
	// allocated is all since the start, live what the last collection left.
	allocated, live uint64
	// objects is what lives and garbage, free what neither has.
	objects, free uint64
}

func now() heap {
	samples := []metrics.Sample{{Name: allocatedBytes}, {Name: liveBytes}, {Name: objectBytes}, {Name: freeBytes}}
	metrics.Read(samples)
	value := func(i int) uint64 { return samples[i].Value.Uint64() }
	return heap{allocated: value(0), live: value(1), objects: value(2), free: value(3)}
}

// releaser knows the heap as it was at the last look.
type releaser struct {
	last heap
	// polls is how many in a row have found a program at rest, since how many the memory
	// was given back last.
	polls, since int
}

// rests reports whether the program is at rest, and has memory that is worth to be given back.
func (r *releaser) rests(is heap) bool {
	was := r.last
	r.last = is
	r.polls++
	r.since++
	if is.allocated-was.allocated > restful {
		r.polls = 0
	}
	spare := is.free
	if is.objects > is.live {
		spare += is.objects - is.live
	}
	if r.polls < restfulPolls || r.since < busyPolls || spare < worthwhile {
		return false
	}
	r.since = 0
	return true
}
