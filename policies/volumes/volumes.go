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

// kind is that of claims.
const kind = "PersistentVolumeClaim"

// Kind is that of claims.
func Kind() schema.GroupKind { return schema.GroupKind{Kind: kind} }

// IsVolumeClaim reports whether objects of a kind hold data that goes with them.
func IsVolumeClaim(of schema.GroupKind) bool { return of == Kind() }

// volumeClaim is what is read of one in a Work.
type volumeClaim struct {
	template types.UID
	named    bool // by its own annotation
}

// volumeClaimOf returns the claim that a Work of a template carries; false if that carries none, or
// is nobody's but its own: a Work that a person wrote is what he deletes.
func volumeClaimOf(work *workv1alpha1.Work) (volumeClaim, bool) {
	if work.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] == "" {
		return volumeClaim{}, false
	}
	for i := range work.Spec.Workload.Manifests {
		raw := work.Spec.Workload.Manifests[i].Raw
		if !bytes.Contains(raw, []byte(kind)) { // most are not parsed for this
			continue
		}
		var obj metav1.PartialObjectMetadata
		if json.Unmarshal(raw, &obj) == nil && IsVolumeClaim(obj.GroupVersionKind().GroupKind()) {
			return volumeClaim{types.UID(obj.Annotations[workv1alpha2.ResourceTemplateUIDAnnotation]), obj.Annotations[workv1alpha2.AllowCascadeAnnotation] == "true"}, true
		}
	}
	return volumeClaim{}, false
}

// Carried reports whether a Work brings a claim to its cluster for a template, and the UID of that.
func Carried(work *workv1alpha1.Work) (template types.UID, yes bool) {
	of, yes := volumeClaimOf(work)
	return of.template, yes
}

// Released reports whether the claim of a Work may go with it: its template was deleted, or somebody
// named it, on the Work or by its own annotation. That a template of another UID was deleted
// says nothing.
func Released(work *workv1alpha1.Work) bool {
	of, _ := volumeClaimOf(work)
	return of.named || work.Annotations[workv1alpha2.AllowCascadeAnnotation] == "true" ||
		of.template != "" && work.Annotations[workv1alpha2.TemplateGoneAnnotation] == string(of.template)
}

// Stays reports whether an object of a kind stays in the member when its Work, or that one's wish
// for it, goes.
func Stays(of schema.GroupKind, work *workv1alpha1.Work) bool {
	if !IsVolumeClaim(of) || work.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] == "" {
		return false
	}
	return !Released(work)
}

// Grace is for how long a Work that is to go waits for the word that its template goes, too: where
// all of an application is deleted, one thing is gone before the other.
const Grace = 10 * time.Second

// Wait returns for how much longer a Work waits that is being deleted since then; zero for no longer,
// and where clocks do not agree.
func Wait(since, now time.Time) time.Duration {
	age := now.Sub(since)
	if age < -time.Second || age >= Grace {
		return 0
	}
	return Grace - age
}

// Kept says that a claim, by its title, stays in a cluster, and how it goes.
func Kept(title, cluster string) string {
	return fmt.Sprintf("%s stays in cluster %s with its data, as nobody deleted it on the control plane: its Work there goes for another reason. "+
		"If nobody needs it there: flotilla prune --cluster %s; what asks for it again there takes it over as it is", title, cluster, cluster)
}
