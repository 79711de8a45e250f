package capacity

import (
	"errors"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/cache"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate/nodes"
)

// ErrUnknown says that nodes and pods of a member are not known yet.
var ErrUnknown = errors.New("its nodes and pods are not known yet")

// Tracker follows what single nodes of a member have free, and what waits there, as its watches
// receive one change after the other. The zero value knows nothing, and says so; it is
// safe for use by several goroutines.
type Tracker struct {
	// More is called when more may fit for another reason than that the sums have
	// grown: a node takes pods that it did not, or a quota leaves more. Nil: nobody
	// asks. It is set before the watches begin, and must be quick.
	More func()
	// Changed is called after each change of any of this, as More is.
	Changed func()

	mu    sync.RWMutex
	known bool
	index nodes.Index
}

// Known says that everything that existed when the watches began was received.
func (r *Tracker) Known() {
	r.mu.Lock()
	r.known = true
	r.mu.Unlock()
	if r.Changed != nil {
		r.Changed()
	}
}

// Most returns how many units fit by the plugins. It errs with ErrUnknown.
func (r *Tracker) Most(ask *nodes.Ask, plugins ...nodes.Plugin) (int32, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.known {
		return 0, ErrUnknown
	}
	return nodes.Most(&r.index, ask, plugins...), nil
}

// Read calls read with all that is known, which must not be kept. It errs with ErrUnknown.
func (r *Tracker) Read(read func(*nodes.Index)) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.known {
		return ErrUnknown
	}
	read(&r.index)
	return nil
}

// Unschedulable returns how many pods of a workload wait for so long for a node. It errs
// with ErrUnknown.
func (r *Tracker) Unschedulable(of workv1alpha2.ObjectReference, threshold time.Duration, now time.Time) (int32, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.known {
		return 0, ErrUnknown
	}
	return r.index.Unschedulable(of, threshold, now), nil
}

// Nodes, Pods and Quotas return the handlers of all changes of what TrimNode,
// TrimPod and TrimQuota keep.
func (r *Tracker) Nodes() cache.ResourceEventHandler {
	return changes(r, func(was, is *nodeOffer) (more bool) {
		switch {
		case is != nil:
			r.index.Node(is.Node.Name, &is.Node)
		case was != nil:
			r.index.Node(was.Node.Name, nil)
		}
		return was != nil && is != nil && (!maps.Equal(was.Node.Labels, is.Node.Labels) || !equality.Semantic.DeepEqual(was.Taints, is.Taints))
	})
}

// Pods is for pods; see Nodes.
func (r *Tracker) Pods() cache.ResourceEventHandler {
	kept := func(p *podNeed) *nodes.Pod {
		if p == nil {
			return nil
		}
		return &p.Pod
	}
	return changes(r, func(was, is *podNeed) (more bool) {
		r.index.Pod(kept(was), kept(is))
		return false
	})
}

// Quotas is for ResourceQuotas; see Nodes.
func (r *Tracker) Quotas() cache.ResourceEventHandler {
	return changes(r, func(was, is *quotaRest) (more bool) {
		switch {
		case is != nil:
			r.index.Quota(is.Namespace, is.ObjectMeta.Name, &is.Quota)
		case was != nil:
			r.index.Quota(was.Namespace, was.ObjectMeta.Name, nil)
		}
		return was != nil && (is == nil || !equality.Semantic.DeepEqual(was.Quota, is.Quota))
	})
}

// changes returns a handler that passes on, for each change of an object, what it was and is;
// nil where there is none.
func changes[T any](r *Tracker, report func(was, is *T) (more bool)) cache.ResourceEventHandler {
	locked := func(was, is any) {
		before, _ := was.(*T)
		after, _ := is.(*T)
		r.mu.Lock()
		more, known := report(before, after), r.known
		r.mu.Unlock()
		if known && r.Changed != nil {
			r.Changed()
		}
		if more && r.More != nil {
			r.More()
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(is any) { locked(nil, is) },
		UpdateFunc: locked,
		DeleteFunc: func(was any) {
			if last, ok := was.(cache.DeletedFinalStateUnknown); ok {
				was = last.Obj
			}
			locked(was, nil)
		},
	}
}
