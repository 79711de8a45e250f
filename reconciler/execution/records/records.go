// Package records keeps what was applied to one member, and put back there, until the
// Works' statuses say so.
//
// In go Works, and what was sent of them; out comes the record of each manifest, be it
// written or not, and what is still to be reported. It starts empty: the statuses have
// the rest. It writes nothing.
package records

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/execution/drift"
	"github.com/flotilla-io/flotilla/reconciler/execution/seal"
)

// Records are those of the Works of one cluster. Use New. It is safe for use by several
// goroutines.
type Records struct {
	seal seal.Seal

	mu      sync.Mutex
	pending map[client.ObjectKey]pending
}

// pending is what a Work's status does not say yet.
type pending struct {
	uid     types.UID
	applied []workv1alpha1.AppliedHash
	drifts  []*drift.Drift // by ordinal; what was put back
}

// New returns Records of which all are written. Those in statuses count where the seal
// proves them.
func New(s seal.Seal) *Records {
	return &Records{seal: s, pending: map[client.ObjectKey]pending{}}
}

// Applied returns the record of what was applied, one entry for each of count manifests, empty
// for those never applied. What the Work does not say yet counts, what others say there does not.
func (r *Records) Applied(work *workv1alpha1.Work, count int) []workv1alpha1.AppliedHash {
	out := make([]workv1alpha1.AppliedHash, count)
	for i := range out {
		out[i].Ordinal = i
	}
	applied := r.seal.Opened(work.Status.Applied)
	r.mu.Lock()
	if p, ok := r.pending[client.ObjectKeyFromObject(work)]; ok && p.uid == work.UID {
		applied = p.applied
	}
	r.mu.Unlock()
	for _, record := range applied {
		if record.Ordinal >= 0 && record.Ordinal < count {
			out[record.Ordinal] = record
		}
	}
	return out
}

// PutBack returns what was put back that is not written to the Work yet, one
// entry for each of count manifests; nil for nothing.
func (r *Records) PutBack(work *workv1alpha1.Work, count int) []*drift.Drift {
	out := make([]*drift.Drift, count)
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pending[client.ObjectKeyFromObject(work)]
	for i, d := range p.drifts {
		if p.uid == work.UID && i < count && d != nil && d.Reverted {
			out[i] = d
		}
	}
	return out
}

// Remember has the record of what was applied, and put back, by ordinal, until the Work's
// status has it.
func (r *Records) Remember(work *workv1alpha1.Work, applied []workv1alpha1.AppliedHash, drifts []*drift.Drift) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending[client.ObjectKeyFromObject(work)] = pending{uid: work.UID, applied: applied, drifts: drifts}
}

// Forget drops that record: the Work's status has it, or the Work is gone.
func (r *Records) Forget(work client.ObjectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pending, work)
}

// Sealed returns records as they are to stand in the Work, without those of what was never
// applied.
func (r *Records) Sealed(applied []workv1alpha1.AppliedHash) []workv1alpha1.AppliedHash {
	return r.seal.Closed(slices.DeleteFunc(slices.Clone(applied), func(a workv1alpha1.AppliedHash) bool { return a.Desired == "" }))
}
