package cascadeguard

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/execution/deletionrecheck"
	"github.com/flotilla-io/flotilla/reconciler/execution/skiperrors"
)

// ordinaryRemoval is how long a deletion may take before that is reported: a namespace, for example, first ends its
// contents.
const ordinaryRemoval = 30 * time.Second

// Announced holds the Works of which an event has said that they are blocked. It may be lost. The zero value is empty. It is
// safe for use by several goroutines.
type Announced struct {
	mu    sync.Mutex
	works map[client.ObjectKey]bool
}

// Due reports whether to emit the event that a Work is not removed: once, at once if a person has to act, and for a
// terminating object when that has taken long. That an agent asks is no such event: who is asked reports it if need be. Nor is that
// a removal was recalled: nothing is amiss.
func (a *Announced) Due(work *workv1alpha1.Work, why error, now time.Time) bool {
	if deletionrecheck.Asks(why) || skiperrors.IsRecalled(why) {
		return false
	}
	if skiperrors.IsTerminating(why) {
		return now.Sub(work.DeletionTimestamp.Time) >= ordinaryRemoval && a.first(client.ObjectKeyFromObject(work))
	}
	return meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkDeletionBlocked) == nil && a.first(client.ObjectKeyFromObject(work))
}

// first reports whether a Work is none of them yet, and adds it.
func (a *Announced) first(key client.ObjectKey) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.works[key] {
		return false
	}
	if a.works == nil {
		a.works = map[client.ObjectKey]bool{}
	}
	a.works[key] = true
	return true
}

// Forget drops what is kept of a Work that is gone.
func (a *Announced) Forget(key client.ObjectKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.works, key)
}
