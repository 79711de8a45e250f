package gctuner

import (
	"runtime/debug"
	"runtime/metrics"
	"time"

	"k8s.io/utils/clock"
)

const (
	// pollPeriod is how often ReleaseIdle reads the size of the heap.
	pollPeriod = 500 * time.Millisecond
	// restful is how many bytes an idle program allocates at most per poll.
	restful = 1 << 20
	// restfulPolls is how many polls in a row must find the program idle.
	restfulPolls = 3
	// busyPolls is for how many polls the program keeps its memory after a release, because
	// the next burst needs it again.
	busyPolls = 10
	// worthwhile is how many bytes a release must return at least: it runs a collection,
	// whose CPU time grows with the live heap.
	worthwhile = 96 << 20
)

// The metrics of bytes allocated so far, of bytes in objects, dead ones included, and of
// memory that the program has and does not use.
const (
	allocatedBytes = "/gc/heap/allocs:bytes"
	objectBytes    = "/memory/classes/heap/objects:bytes"
	freeBytes      = "/memory/classes/heap/free:bytes"
)

// ReleaseIdle returns memory to the system seconds after a burst, and then not again for five
// seconds. stop ends it.
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

// heap has the sizes of a heap, in bytes.
type heap struct {
	// allocated is the total since the start, live the rest after the last collection.
	allocated, live uint64
	// objects is live objects and garbage, free is unused memory.
	objects, free uint64
}

func now() heap {
	samples := []metrics.Sample{{Name: allocatedBytes}, {Name: liveBytes}, {Name: objectBytes}, {Name: freeBytes}}
	metrics.Read(samples)
	value := func(i int) uint64 { return samples[i].Value.Uint64() }
	return heap{allocated: value(0), live: value(1), objects: value(2), free: value(3)}
}

// releaser has the heap at the last poll.
type releaser struct {
	last heap
	// polls is how many polls in a row found the program idle, since the number of polls
	// since the last release.
	polls, since int
}

// rests reports whether the program is idle and has enough memory to release.
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
