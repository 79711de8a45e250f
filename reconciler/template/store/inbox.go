package store

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// Inbox is where a Listener puts what its loop should look at. It is a source
// of the loop's controller and keeps what comes in before the controller runs.
// The zero value is ready.
type Inbox[T comparable] struct {
	mu      sync.Mutex
	queue   workqueue.TypedRateLimitingInterface[T]
	waiting map[T]bool // value: whether it can wait behind others
}

// Start hands over what has come in; the controller calls it.
func (i *Inbox[T]) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[T]) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.queue = queue
	for item, later := range i.waiting {
		i.put(item, later)
	}
	i.waiting = nil
	return nil
}

// Add puts item in. Later says that it may wait behind changes that somebody
// made just now.
func (i *Inbox[T]) Add(item T, later bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.queue != nil {
		i.put(item, later)
		return
	}
	if i.waiting == nil {
		i.waiting = map[T]bool{}
	}
	if was, in := i.waiting[item]; in {
		later = later && was
	}
	i.waiting[item] = later
}

// AddAfter puts item in once the time has passed.
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

func (i *Inbox[T]) put(item T, later bool) {
	queue, lanes := i.queue.(priorityqueue.PriorityQueue[T])
	if !lanes || !later {
		i.queue.Add(item)
		return
	}
	low := handler.LowPriority
	queue.AddWithOpts(priorityqueue.AddOpts{Priority: &low}, item)
}
