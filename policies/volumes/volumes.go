package volumes

import (
	"bytes"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// kind is the kind of claims.
const kind = "PersistentVolumeClaim"

// Kind returns the kind of claims.
func Kind() schema.GroupKind { return schema.GroupKind{Kind: kind} }

// IsVolumeClaim reports whether objects of a kind hold data that goes with them.
func IsVolumeClaim(of schema.GroupKind) bool { return of == Kind() }

// volumeClaim is what is read of a claim in a Work.
type volumeClaim struct {
	template types.UID
	named    bool // by its own annotation
}

// volumeClaimOf returns the claim that a Work of a template carries; false if that carries none, or
// was written by a person: to delete such a Work is to delete the claim.
func volumeClaimOf(work *workv1alpha1.Work) (volumeClaim, bool) {
	if work.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] == "" {
		return volumeClaim{}, false
	}
	for i := range work.Spec.Workload.Manifests {
		raw := work.Spec.Workload.Manifests[i].Raw
		if !bytes.Contains(raw, []byte(kind)) { // most manifests need not be parsed
			continue
		}
		var obj metav1.PartialObjectMetadata
		if json.Unmarshal(raw, &obj) == nil && IsVolumeClaim(obj.GroupVersionKind().GroupKind()) {
			return volumeClaim{types.UID(obj.Annotations[workv1alpha2.ResourceTemplateUIDAnnotation]), obj.Annotations[workv1alpha2.AllowCascadeAnnotation] == "true"}, true
		}
	}
	return volumeClaim{}, false
}

// Carried reports whether a Work holds a claim of a template, and returns the template's UID.
func Carried(work *workv1alpha1.Work) (template types.UID, yes bool) {
	of, yes := volumeClaimOf(work)
	return of.template, yes
}

// Released reports whether the claim of a Work may be deleted with it: its template was deleted, or somebody
// named it, on the Work or by its own annotation. That a template of another UID was deleted
// does not count.
func Released(work *workv1alpha1.Work) bool {
	of, _ := volumeClaimOf(work)
	return of.named || work.Annotations[workv1alpha2.AllowCascadeAnnotation] == "true" ||
		of.template != "" && work.Annotations[workv1alpha2.TemplateGoneAnnotation] == string(of.template)
}

// Stays reports whether an object of a kind stays in the member when its Work, or its manifest in the
// Work, is removed.
func Stays(of schema.GroupKind, work *workv1alpha1.Work) bool {
	if !IsVolumeClaim(of) || work.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] == "" {
		return false
	}
	return !Released(work)
}

// Grace is how long a Work that is to be deleted waits for the deletion of its template: where
// a whole application is deleted, one object is gone before the other.
const Grace = 10 * time.Second

// Wait returns how much longer a Work waits that has been in deletion since then; zero for no longer,
// and where the clocks differ.
func Wait(since, now time.Time) time.Duration {
	age := now.Sub(since)
	if age < -time.Second || age >= Grace {
		return 0
	}
	return Grace - age
}

// Kept returns the text that a claim stays in a cluster, and how to remove it.
func Kept(title, cluster string) string {
	return fmt.Sprintf("%s stays in cluster %s with its data, as nobody deleted it on the control plane: its Work there goes for another reason. "+
		"If nobody needs it there: flotilla prune --cluster %s; what asks for it again there takes it over as it is", title, cluster, cluster)
}
