package propagation

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

const (
	// WaitsAnnotation is, on a template that a Lazy policy has claimed, the
	// edition that the template had at that time. The template waits as long as
	// that is still its edition.
	WaitsAnnotation = "propagation.flotilla.io/waits-for-change-of"
	// EditionAnnotation is, on the binding of a Lazy policy, the edition of the
	// template for which the policy was last applied.
	EditionAnnotation = "propagation.flotilla.io/template-edition"
)

// Activation is whether a policy acts on a template now. It follows from stored
// objects alone, so that a restart activates nothing.
type Activation struct {
	// Waits means that the policy is Lazy and the template has not been changed by
	// its user since. The template is claimed; its binding, if it has one, stays
	// as it is.
	Waits bool
	// Note is the value of the template's WaitsAnnotation; empty for none.
	Note string
	// Edition is the value of EditionAnnotation for a binding that is written now;
	// empty for none.
	Edition string
}

// Activate returns whether p, which is to carry the template, acts on it now.
// binding is the template's; nil if it has none.
//
// A policy that is not Lazy always acts. A Lazy one acts on templates that were
// created after it was last changed, and on each change that a user makes to a
// template: to anything but its status and the control plane's own labels and
// annotations.
func Activate(template *unstructured.Unstructured, p policyv1alpha1.Policy, binding workv1alpha2.Binding) (Activation, error) {
	if p.PropagationSpec().ActivationPreference != policyv1alpha1.LazyActivation {
		return Activation{}, nil
	}
	edition, err := Edition(template)
	if err != nil {
		return Activation{}, err
	}
	act, wait := Activation{Edition: edition}, Activation{Waits: true, Note: edition}
	note := template.GetAnnotations()[WaitsAnnotation]
	ref, _ := Claimed(template)
	switch {
	case ref != RefOf(p) && younger(template, p):
		return act, nil
	case ref != RefOf(p), note == edition:
		return wait, nil
	case note != "", binding == nil:
		return act, nil
	}
	if done := binding.GetAnnotations()[EditionAnnotation]; done != "" {
		return act.unless(done == edition), nil
	}
	// The policy was not Lazy when the binding was written.
	digest, err := Digest(template)
	return act.unless(digest == binding.GetAnnotations()[DigestAnnotation]), err
}

func (a Activation) unless(seen bool) Activation {
	if seen {
		return Activation{Waits: true}
	}
	return a
}

// Claim returns the claim of p, with the template's WaitsAnnotation.
func (a Activation) Claim(p policyv1alpha1.Policy) Claim {
	claim := ClaimOf(p)
	if a.Note != "" {
		claim.Annotations[WaitsAnnotation] = a.Note
	}
	return claim
}

// Note records on b the version of the template that it is for.
func Note(b workv1alpha2.Binding, digest, edition string) {
	annotations := mapOf(maps.Clone(b.GetAnnotations()))
	annotations[DigestAnnotation] = digest
	if delete(annotations, EditionAnnotation); edition != "" {
		annotations[EditionAnnotation] = edition
	}
	b.SetAnnotations(annotations)
}

// Follow gives b the claim of p while its template waits, and changes nothing
// else. The claim changes the template's digest, from before to after: a binding
// that was for the former is for the latter. A binding without a placement exists
// only because others need it, and gets no claim until p acts.
func Follow(b workv1alpha2.Binding, p policyv1alpha1.Policy, before, after string) {
	if b.BindingSpec().Placement == nil {
		return
	}
	ClaimOf(p).Set(b)
	if b.GetAnnotations()[DigestAnnotation] == before {
		Note(b, after, b.GetAnnotations()[EditionAnnotation])
	}
}

// Edition returns a digest of what users write of obj, and of its UID: all but
// its status, the metadata that the API server maintains, and the control plane's
// own labels and annotations.
func Edition(obj *unstructured.Unstructured) (string, error) {
	own := obj.DeepCopy()
	own.SetLabels(written(own.GetLabels()))
	own.SetAnnotations(written(own.GetAnnotations()))
	own.Object["identity"] = string(obj.GetUID())
	return Digest(own)
}

// WaitsForChange reports whether obj is a template that a Lazy policy has claimed
// and that its user has not changed since, so that nothing of it is sent to
// clusters.
func WaitsForChange(obj *unstructured.Unstructured) bool {
	note := obj.GetAnnotations()[WaitsAnnotation]
	if note == "" {
		return false
	}
	edition, err := Edition(obj)
	return err == nil && note == edition
}

// written returns the labels or annotations that users write.
func written(all map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range all {
		domain, _, _ := strings.Cut(k, "/")
		ours := strings.Contains(k, ".karmada.io") || domain == "propagation.flotilla.io"
		if !ours || k == policyv1alpha1.NamespaceSkipAutoPropagationLabel {
			out[k] = v
		}
	}
	return out
}

// younger reports whether the template was created after p was last changed. A
// template without a creation time is about to be created.
func younger(template *unstructured.Unstructured, p policyv1alpha1.Policy) bool {
	made := template.GetCreationTimestamp()
	if made.IsZero() {
		return true
	}
	if p.GetGeneration() > 1 {
		status := p.PropagationStatus()
		return status.ObservedGeneration == p.GetGeneration() && status.ObservedTime != nil && made.After(status.ObservedTime.Time)
	}
	since := p.GetCreationTimestamp()
	if !made.Equal(&since) {
		return made.After(since.Time)
	}
	order, err := resourceversion.CompareResourceVersion(template.GetResourceVersion(), p.GetResourceVersion())
	return err == nil && order > 0
}
