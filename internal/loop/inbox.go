package loop

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// Inbox is a queue of requests from other parts of the process. It is a source of the loop's
// controller and keeps requests that come before the controller runs.
// The zero value is ready.
type Inbox[T comparable] struct {
	mu      sync.Mutex
	queue   workqueue.TypedRateLimitingInterface[T]
	waiting map[T]int // priorities
}

// Start passes on the kept requests; the controller calls it.
func (i *Inbox[T]) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[T]) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.queue = queue
	for item, priority := range i.waiting {
		i.put(item, priority)
	}
	i.waiting = nil
	return nil
}

// Add enqueues item. Later says that it may wait behind changes that a user
// has just made.
func (i *Inbox[T]) Add(item T, later bool) {
	priority := 0
	if later {
		priority = handler.LowPriority
	}
	i.AddWithPriority(item, priority)
}

// AddWithPriority enqueues item with a priority; the highest counts.
func (i *Inbox[T]) AddWithPriority(item T, priority int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.queue != nil {
		i.put(item, priority)
		return
	}
	if i.waiting == nil {
		i.waiting = map[T]int{}
	}
	if was, in := i.waiting[item]; in {
		priority = max(priority, was)
	}
	i.waiting[item] = priority
}

// AddAfter enqueues item after the given time.
func (i *Inbox[T]) AddAfter(item T, wait time.Duration) {
	i.mu.Lock()
	queue := i.queue
	i.mu.Unlock()
	if queue == nil {
		i.Add(item, true)
		return
	}
	queue.AddAfter(item, wait)
}

func (i *Inbox[T]) put(item T, priority int) {
	if queue, prioritized := i.queue.(priorityqueue.PriorityQueue[T]); prioritized {
		queue.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, item)
		return
	}
	i.queue.Add(item)
}
