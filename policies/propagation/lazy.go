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
	// WaitsAnnotation on a template that a Lazy policy has claimed holds the
	// edition of it that was there then. While that is its edition, it waits.
	WaitsAnnotation = "propagation.flotilla.io/waits-for-change-of"
	// EditionAnnotation on the binding of a Lazy policy holds the edition of the
	// template for which the policy was last acted on.
	EditionAnnotation = "propagation.flotilla.io/template-edition"
)

// Activation reports whether a policy acts on a template now. All of it is read
// from what is stored, so that a restart activates nothing.
type Activation struct {
	// Waits: the policy is Lazy, and the template has not been changed by its user
	// since. It is claimed; its binding, if it has one, stays as it is.
	Waits bool
	// Note is what the template is to say under WaitsAnnotation; empty: nothing.
	Note string
	// Edition is what a binding that is written now is to say under
	// EditionAnnotation; empty: nothing.
	Edition string
}

// Activate reports whether p, which is to carry the template, acts on it now.
// Binding is the template's, nil if it has none.
//
// A policy that is not Lazy always acts. A Lazy one acts on templates that were
// made after it was last changed, and on each change that a user makes to a
// template: of anything but its status and the labels and annotations of the
// control plane's own.
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

// Claim returns the claim of p, with the note that the template is to carry.
func (a Activation) Claim(p policyv1alpha1.Policy) Claim {
	claim := ClaimOf(p)
	if a.Note != "" {
		claim.Annotations[WaitsAnnotation] = a.Note
	}
	return claim
}

// Note records on b which template it is for.
func Note(b workv1alpha2.Binding, digest, edition string) {
	annotations := mapOf(maps.Clone(b.GetAnnotations()))
	annotations[DigestAnnotation] = digest
	if delete(annotations, EditionAnnotation); edition != "" {
		annotations[EditionAnnotation] = edition
	}
	b.SetAnnotations(annotations)
}

// Follow lets b belong to p while its template waits. Nothing else changes:
// a binding that was for the template with the claim that it had, of the digest
// before, is for the template as it is claimed now. One without a placement runs
// where others need it, and belongs to none until p acts.
func Follow(b workv1alpha2.Binding, p policyv1alpha1.Policy, before, after string) {
	if b.BindingSpec().Placement == nil {
		return
	}
	ClaimOf(p).Set(b)
	if b.GetAnnotations()[DigestAnnotation] == before {
		Note(b, after, b.GetAnnotations()[EditionAnnotation])
	}
}

// Edition returns a digest of what users write of obj, and of its identity: all
// but its status, what the server keeps in its metadata, and the labels and
// annotations of the control plane's own.
func Edition(obj *unstructured.Unstructured) (string, error) {
	own := obj.DeepCopy()
	own.SetLabels(written(own.GetLabels()))
	own.SetAnnotations(written(own.GetAnnotations()))
	own.Object["identity"] = string(obj.GetUID())
	return Digest(own)
}

// WaitsForChange reports whether obj is a template that a Lazy policy has claimed
// and that its user has not changed since: nothing of it is sent anywhere.
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

// younger reports whether the template was made after p was last changed. One that
// has no time yet is being made just now.
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
