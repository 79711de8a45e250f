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

// Two hubs may have Works with the same name. The Work's name in an object of a member
// counts only if the object belongs to this hub.

// Member returns this hub's claim on the member, by which objects count as its own.
type Member interface {
	Standing() hubclaim.Standing
}

// Owner is a Work as the owner of objects in one member.
type Owner struct {
	work   *workv1alpha1.Work
	member Member
}

// OwnerOf returns a Work as the owner of objects in a member.
func OwnerOf(work *workv1alpha1.Work, member Member) Owner {
	return Owner{work: work, member: member}
}

// Key is the Work's name.
func (o Owner) Key() client.ObjectKey { return client.ObjectKeyFromObject(o.work) }

// Foreign reports whether an object belongs to another hub.
func (o Owner) Foreign(object *members.Observed) bool {
	return object.Managed && o.member.Standing().Foreign(object.Owner, o.id())
}

// Has reports whether an object belongs to the Work.
func (o Owner) Has(object *members.Observed) bool {
	return object.Managed && o.NamedBy(object) && !o.Foreign(object)
}

// NamedBy reports whether an object names the Work, by its name or its former name, which
// the object keeps until the next time that something is sent.
func (o Owner) NamedBy(object *members.Observed) bool {
	key := o.Key()
	return object.Work == key || object.Work.Name != "" && object.Work.Namespace == key.Namespace && object.Work == Former(o.work)
}

// MayTake reports whether the Work may apply to an object. It may if the object is managed by this hub;
// if it was sent before and was the Work's until somebody removed the label; and
// in any case if the manifest asks to overwrite. An object that another hub manages does not count as
// managed.
func (o Owner) MayTake(desired, live *unstructured.Unstructured, sentBefore bool) bool {
	metadata := members.MetadataOf(live)
	if o.Foreign(metadata) {
		return overwrites(desired)
	}
	return metadata.Managed || o.NamedBy(metadata) || overwrites(desired) || sentBefore && ownership.Applies(live)
}

// MayRemove reports whether an object that names the Work may be deleted.
func (o Owner) MayRemove(object *members.Observed) bool {
	return o.member.Standing().MayRemove(object.Owner, o.id())
}

// id returns the permanent ID of the Work.
func (o Owner) id() string { return o.work.Labels[workv1alpha2.WorkPermanentIDLabel] }

// overwrites reports whether a manifest asks to take over an existing object of its name.
func overwrites(desired *unstructured.Unstructured) bool {
	return desired.GetAnnotations()[workv1alpha2.ResourceConflictResolutionAnnotation] == workv1alpha2.ResourceConflictResolutionOverwrite
}
