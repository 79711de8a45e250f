package execution

import (
	"errors"
	"slices"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/reconciler/execution/drift"
	"github.com/flotilla-io/flotilla/reconciler/execution/manifest"
	"github.com/flotilla-io/flotilla/reconciler/execution/outcome"
	"github.com/flotilla-io/flotilla/reconciler/execution/ownermeta"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
)

// state is one pass over one Work: what is known of it, and the results.
type state struct {
	key     client.ObjectKey
	work    *workv1alpha1.Work       // shared: not to be changed
	beside  bool                     // whether it goes as its binding goes, not deleted itself
	cluster *clusterv1alpha1.Cluster // nil: gone
	member  member                   // nil: not connected
	objects []object                 // by ordinal
	left    []manifest.Manifest      // objects that the Work no longer asks for and that still exist
	stuck   error                    // why one of those could not be removed
	status  *workv1alpha1.WorkStatus // to be written; nil for unchanged
	stays   *stay                    // why it cannot end, once that is to be reported
	kept    []manifest.Manifest      // the claims that it leaves in the cluster
	blocked *waitqueue.Blocked
}

// object is one manifest of a Work, and what is known of its object.
type object struct {
	manifest.Manifest
	record   workv1alpha1.AppliedHash // of what was applied, as it is to be
	observed *members.Observed        // nil where there is none
	known    bool                     // whether observed is complete: the watch is synced
	failed   error                    // nil where all is well
	drift    *drift.Drift             // nil where there is none
}

// stay is why a Work that is being deleted cannot end.
type stay struct {
	why error
	// deletes asks for a deletion timestamp on a Work that ends along with its binding.
	deletes bool
}

// owner is the Work in the form in which the member's objects name it.
func (s *state) owner() ownermeta.Owner { return ownermeta.OwnerOf(s.work, s.member) }

// leaves reports whether the whole cluster is being unjoined.
func (s *state) leaves() bool { return s.cluster != nil && !s.cluster.DeletionTimestamp.IsZero() }

// recorded reports whether the Work's status already has what is applied.
func (s *state) recorded() bool {
	return slices.EqualFunc(s.objects, s.work.Status.Applied, func(o object, had workv1alpha1.AppliedHash) bool { return o.record == had })
}

// problem is why the Work has to be tried again.
func (s *state) problem() error {
	if s.blocked != nil {
		return s.blocked
	}
	return errors.Join(append(slices.DeleteFunc(s.failed(), outcome.IsAsItIs), s.stuck)...)
}

// failed are the faults of all manifests, by ordinal; nil where all is well.
func (s *state) failed() []error {
	out := make([]error, len(s.objects))
	for i := range s.objects {
		out[i] = s.objects[i].failed
	}
	return out
}

// records are those of what was applied of all manifests, by ordinal.
func (s *state) records() []workv1alpha1.AppliedHash {
	out := make([]workv1alpha1.AppliedHash, len(s.objects))
	for i := range s.objects {
		out[i] = s.objects[i].record
	}
	return out
}

// drifts are those of all objects, by ordinal; nil where there is none.
func (s *state) drifts() []*drift.Drift {
	out := make([]*drift.Drift, len(s.objects))
	for i := range s.objects {
		out[i] = s.objects[i].drift
	}
	return out
}

// suspended reports whether changes are kept from the member.
func suspended(work *workv1alpha1.Work) bool {
	return work.Spec.SuspendDispatching != nil && *work.Spec.SuspendDispatching
}

// leavesDrift reports whether changes of others in the member are left there and reported.
func leavesDrift(work *workv1alpha1.Work) bool {
	return work.Annotations[workv1alpha2.DriftAnnotation] == workv1alpha2.DriftReport
}

// recalled reports whether what a Work made that is being deleted is asked for again.
func recalled(work *workv1alpha1.Work) bool {
	return work.Annotations[workv1alpha2.WantedAgainAnnotation] == "true"
}

// preserves reports whether what the Work has sent is to stay when it goes.
func preserves(work *workv1alpha1.Work) bool {
	return ptr.Deref(work.Spec.PreserveResourcesOnDeletion, false)
}
