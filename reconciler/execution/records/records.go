// Package records keeps the records of what was applied to one member, and of the drift that was corrected there, until
// the Works' statuses have them.
//
// In go Works, and what was sent of them; out comes the record of each manifest, written
// or not, and the corrections that are still to be reported. It starts empty, as the statuses have
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

// Records holds the records of the Works of one cluster. Use New. It is safe for use by several
// goroutines.
type Records struct {
	seal seal.Seal

	mu      sync.Mutex
	pending map[client.ObjectKey]pending
}

// pending is what a Work's status does not have yet.
type pending struct {
	uid     types.UID
	applied []workv1alpha1.AppliedHash
	drifts  []*drift.Drift // what was corrected, by ordinal
}

// New returns Records with nothing pending. Records in statuses count only if the seal
// verifies them.
func New(s seal.Seal) *Records {
	return &Records{seal: s, pending: map[client.ObjectKey]pending{}}
}

// Applied returns the records of what was applied, one for each of count manifests, empty
// for those never applied. They include what the Work's status does not have yet, and leave out what others wrote
// there.
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

// PutBack returns the corrected drift that is not in the Work's status yet, one
// entry for each of count manifests; nil for none.
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

// Remember keeps what was applied, and what drift was corrected, by ordinal, until the Work's
// status has it.
func (r *Records) Remember(work *workv1alpha1.Work, applied []workv1alpha1.AppliedHash, drifts []*drift.Drift) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending[client.ObjectKeyFromObject(work)] = pending{uid: work.UID, applied: applied, drifts: drifts}
}

// Forget drops what is kept of a Work: its status has it, or the Work is gone.
func (r *Records) Forget(work client.ObjectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pending, work)
}

// Sealed returns records in the form for the Work's status, without those of manifests that were never
// applied.
func (r *Records) Sealed(applied []workv1alpha1.AppliedHash) []workv1alpha1.AppliedHash {
	return r.seal.Closed(slices.DeleteFunc(slices.Clone(applied), func(a workv1alpha1.AppliedHash) bool { return a.Desired == "" }))
}
