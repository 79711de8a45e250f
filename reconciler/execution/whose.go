package execution

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/reconciler/execution/acting"
	"github.com/flotilla-io/flotilla/reconciler/execution/outcome"
	"github.com/flotilla-io/flotilla/reconciler/execution/ownermeta"
)

// Two hubs may have Works of one name. What an object in a member says of its Work
// by name counts only where the object is this hub's.

// id returns the permanent id of the Work.
func (s *state) id() string { return s.work.Labels[workv1alpha2.WorkPermanentIDLabel] }

// foreign reports whether an object is another hub's.
func (s *state) foreign(o *members.Observed) bool {
	return o.Managed && s.member.Standing().Foreign(o.Claim, s.id())
}

// has reports whether an object is the Work's.
func (s *state) has(o *members.Observed) bool {
	return o.Managed && s.named(o) && !s.foreign(o)
}

// named reports whether an object names the Work, be it by the name that the Work had
// formerly: until something is sent to it, the object keeps that.
func (s *state) named(o *members.Observed) bool {
	return o.Work == s.key || o.Work.Name != "" && o.Work.Namespace == s.key.Namespace && o.Work == ownermeta.Former(s.work)
}

// send applies an object, which says from then on which hub has applied it. That
// is told with the first change that is sent anyway: it is no drift where it is
// missing, and no reason to send anything.
func (s *state) send(ctx context.Context, desired *unstructured.Unstructured) (*members.Observed, error) {
	if hub := s.member.Standing().Hub; hub != "" {
		annotations := desired.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[workv1alpha2.HubAnnotation] = hub
		desired.SetAnnotations(annotations)
	}
	as, err := acting.Of(s.cluster, s.work, s.member)
	if err != nil {
		return nil, err
	}
	return as.Apply(ctx, desired)
}

// adopt sends a patch by which an object becomes the Work's.
func (s *state) adopt(ctx context.Context, m *manifest, patch []byte) error {
	as, err := acting.Of(s.cluster, s.work, s.member)
	if err != nil {
		return err
	}
	return as.Patch(ctx, m.gvk, m.key, patch)
}

// taken says why an object is left alone that has the name of the manifest's.
func (s *state) taken(m *manifest, live metav1.Object) error {
	by := live.GetAnnotations()[workv1alpha2.HubAnnotation]
	if by == s.member.Standing().Hub {
		by = ""
	}
	return outcome.Taken(m.title(), by, m.gvk.GroupKind() == schema.GroupKind{Kind: "Namespace"})
}
