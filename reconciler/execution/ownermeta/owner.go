package ownermeta

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/internal/ownership"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// Two hubs may have Works of one name. What an object in a member says of its Work
// by name counts only where the object is this hub's.

// Member says what this hub may conclude of whose objects are.
type Member interface {
	Standing() hubclaim.Standing
}

// Owner is a Work as the objects of one member name it.
type Owner struct {
	work   *workv1alpha1.Work
	member Member
}

// OwnerOf returns a Work as the objects of a member name it.
func OwnerOf(work *workv1alpha1.Work, member Member) Owner {
	return Owner{work: work, member: member}
}

// Key is the Work's name.
func (o Owner) Key() client.ObjectKey { return client.ObjectKeyFromObject(o.work) }

// Foreign reports whether an object is another hub's.
func (o Owner) Foreign(object *members.Observed) bool {
	return object.Managed && o.member.Standing().Foreign(object.Owner, o.id())
}

// Has reports whether an object is the Work's.
func (o Owner) Has(object *members.Observed) bool {
	return object.Managed && o.NamedBy(object) && !o.Foreign(object)
}

// NamedBy reports whether an object names the Work, be it by the name that the Work had
// formerly: until something is sent to it, the object keeps that.
func (o Owner) NamedBy(object *members.Observed) bool {
	key := o.Key()
	return object.Work == key || object.Work.Name != "" && object.Work.Namespace == key.Namespace && object.Work == Former(o.work)
}

// MayTake reports whether the Work may apply to an object: to one that is managed,
// to one that was its own before somebody took the label off, where it was sent
// before, and to any if the manifest says so. What another hub manages is not managed
// here.
func (o Owner) MayTake(desired, live *unstructured.Unstructured, sentBefore bool) bool {
	metadata := members.MetadataOf(live)
	if o.Foreign(metadata) {
		return overwrites(desired)
	}
	return metadata.Managed || o.NamedBy(metadata) || overwrites(desired) || sentBefore && ownership.Applies(live)
}

// MayRemove reports whether an object may go that says that it is the Work's.
func (o Owner) MayRemove(object *members.Observed) bool {
	return o.member.Standing().MayRemove(object.Owner, o.id())
}

// id returns the permanent id of the Work.
func (o Owner) id() string { return o.work.Labels[workv1alpha2.WorkPermanentIDLabel] }

// overwrites reports whether a manifest takes over an object that is in its way.
func overwrites(desired *unstructured.Unstructured) bool {
	return desired.GetAnnotations()[workv1alpha2.ResourceConflictResolutionAnnotation] == workv1alpha2.ResourceConflictResolutionOverwrite
}
