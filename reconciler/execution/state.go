package execution

import (
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/reconciler/execution/drift"
	"github.com/flotilla-io/flotilla/reconciler/execution/manifest"
	"github.com/flotilla-io/flotilla/reconciler/execution/ownermeta"
	"github.com/flotilla-io/flotilla/reconciler/execution/skiperrors"
	"github.com/flotilla-io/flotilla/reconciler/execution/symptoms"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
)

// state is one pass over one Work: what is known of it, and the results.
type state struct {
	key     client.ObjectKey
	work    *workv1alpha1.Work       // the cache's own: do not change it
	beside  bool                     // it ends because its binding is being deleted, and has no deletion timestamp
	cluster *clusterv1alpha1.Cluster // nil: gone
	member  member                   // nil: not connected
	objects []object                 // by ordinal
	left    []manifest.Manifest      // objects that no manifest names any more and that still exist
	stuck   error                    // why one of those could not be removed
	status  *workv1alpha1.WorkStatus // to be written; nil for unchanged
	stays   *stay                    // why it cannot end; nil if that is not to be reported
	kept    []manifest.Manifest      // the claims that it leaves in the cluster
	judged  time.Time                // when it was judged whether it may be the last copy; zero: it was not
	blocked *waitqueue.Blocked
}

// object is one manifest of a Work, and what is known of its object.
type object struct {
	manifest.Manifest
	record   workv1alpha1.AppliedHash // of what was applied, as the status will have it
	observed *members.Observed        // nil if there is none
	known    bool                     // whether the watch is synced, so that observed is complete
	failed   error                    // nil if it is applied
	drift    *drift.Drift             // nil if there is none
}

// stay is why a Work that is being deleted cannot end.
type stay struct {
	why error
	// deletes says that the Work gets a deletion timestamp, as it ends along with its binding.
	deletes bool
}

// owner returns the Work as the owner of the member's objects.
func (s *state) owner() ownermeta.Owner { return ownermeta.OwnerOf(s.work, s.member) }

// leaves reports whether the cluster is being unjoined.
func (s *state) leaves() bool { return s.cluster != nil && !s.cluster.DeletionTimestamp.IsZero() }

// recorded reports whether the Work's status already has what is applied.
func (s *state) recorded() bool {
	return slices.EqualFunc(s.objects, s.work.Status.Applied, func(o object, had workv1alpha1.AppliedHash) bool { return o.record == had })
}

// problem returns why the Work has to be tried again; nil for no reason.
func (s *state) problem() error {
	if s.blocked != nil {
		return s.blocked
	}
	return errors.Join(append(slices.DeleteFunc(s.failed(), skiperrors.IsAsItIs), s.stuck)...)
}

// failed returns the errors of all manifests, by ordinal; nil for those without.
func (s *state) failed() []error {
	out := make([]error, len(s.objects))
	for i := range s.objects {
		out[i] = s.objects[i].failed
	}
	return out
}

// records returns the records of all manifests, by ordinal.
func (s *state) records() []workv1alpha1.AppliedHash {
	out := make([]workv1alpha1.AppliedHash, len(s.objects))
	for i := range s.objects {
		out[i] = s.objects[i].record
	}
	return out
}

// drifts returns the drift of all objects, by ordinal; nil for those without.
func (s *state) drifts() []*drift.Drift {
	out := make([]*drift.Drift, len(s.objects))
	for i := range s.objects {
		out[i] = s.objects[i].drift
	}
	return out
}

// reported returns what is known of all objects, by ordinal; nothing of those that are not the Work's.
func (s *state) reported() []symptoms.Object {
	out := make([]symptoms.Object, len(s.objects))
	for i := range s.objects {
		o := &s.objects[i]
		out[i] = symptoms.Object{Kind: o.GVK.GroupKind(), Known: o.known, Manifest: func() (*unstructured.Unstructured, error) { return o.Object(s.work) }}
		if o.observed != nil && s.owner().Has(o.observed) {
			out[i].Observed = o.observed
		}
	}
	return out
}

// suspended reports whether dispatching is suspended, so that nothing is sent to the member.
func suspended(work *workv1alpha1.Work) bool {
	return work.Spec.SuspendDispatching != nil && *work.Spec.SuspendDispatching
}

// leavesDrift reports whether drift is only reported, and not corrected.
func leavesDrift(work *workv1alpha1.Work) bool {
	return work.Annotations[workv1alpha2.DriftAnnotation] == workv1alpha2.DriftReport
}

// recalled reports whether the objects of a Work that is being deleted are wanted again, so that they stay.
func recalled(work *workv1alpha1.Work) bool {
	return work.Annotations[workv1alpha2.WantedAgainAnnotation] == workv1alpha2.WantedAgain
}

// undecided reports whether they may be.
func undecided(work *workv1alpha1.Work) bool {
	return work.Annotations[workv1alpha2.WantedAgainAnnotation] == workv1alpha2.WantedAgainUndecided
}

// preserves reports whether the Work's objects stay in the member when it is deleted.
func preserves(work *workv1alpha1.Work) bool {
	return ptr.Deref(work.Spec.PreserveResourcesOnDeletion, false)
}
