package eventwriter

import (
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/flotilla-io/flotilla/internal/fairqueue"
)

// tenantQueue holds the Events that have yet to be written, shared fairly between tenants.
// Its counts are guarded by the mutex of the Writer.
type tenantQueue struct {
	queue *fairqueue.Queue[key]
	most  int
	// waiting is how many Events wait in all, and byTenant how many of each tenant.
	waiting  int
	byTenant map[string]int
}

func newTenantQueue(opts Options) *tenantQueue {
	limiter := workqueue.DefaultTypedItemBasedRateLimiter[key]() // nothing is ever requeued
	return &tenantQueue{
		queue:    fairqueue.Shared(limiter, opts.Clock, 1, func(k key) string { return k.tenant }),
		most:     opts.Most,
		byTenant: map[string]int{},
	}
}

// admits reports whether there is room for one more Event of a tenant. A tenant with less than its
// share is still admitted when others have filled the queue: a flood must not silence anybody else.
func (q *tenantQueue) admits(tenant string) bool {
	if q.waiting < q.most {
		return true
	}
	tenants := len(q.byTenant)
	if q.byTenant[tenant] == 0 {
		tenants++
	}
	return q.waiting < 2*q.most && q.byTenant[tenant] < q.most/tenants
}

// add puts a key last in its tenant's turn; it is handed out after the delay at the earliest.
func (q *tenantQueue) add(k key, after time.Duration) {
	q.waiting++
	q.byTenant[k.tenant]++
	q.queue.AddAfter(k, after)
}

// remove takes a key off the counts once it is handed out.
func (q *tenantQueue) remove(k key) {
	q.waiting--
	if q.byTenant[k.tenant]--; q.byTenant[k.tenant] == 0 {
		delete(q.byTenant, k.tenant)
	}
}
