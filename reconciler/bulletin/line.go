package bulletin

import (
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/flotilla-io/flotilla/internal/fairqueue"
)

// line is where Events wait, in the turns of those who they are for. Its counts are
// guarded by the Writer.
type line struct {
	queue *fairqueue.Queue[key]
	most  int
	// waits is how many wait, and of how many that is of each tenant.
	waits int
	of    map[string]int
}

func newLine(opts Options) *line {
	limiter := workqueue.DefaultTypedItemBasedRateLimiter[key]() // nothing is put back
	return &line{
		queue: fairqueue.Shared(limiter, opts.Clock, 1, func(k key) string { return k.tenant }),
		most:  opts.Most,
		of:    map[string]int{},
	}
}

// admits reports whether there is room for one more of a tenant. Who has less than a share
// finds it where others have taken all.
func (l *line) admits(tenant string) bool {
	if l.waits < l.most {
		return true
	}
	tenants := len(l.of)
	if l.of[tenant] == 0 {
		tenants++
	}
	return l.waits < 2*l.most && l.of[tenant] < l.most/tenants
}

// join puts a key at the end of its tenant's, where it may be handed out after a time.
func (l *line) join(k key, after time.Duration) {
	l.waits++
	l.of[k.tenant]++
	l.queue.AddAfter(k, after)
}

// leave makes room.
func (l *line) leave(k key) {
	l.waits--
	if l.of[k.tenant]--; l.of[k.tenant] == 0 {
		delete(l.of, k.tenant)
	}
}
