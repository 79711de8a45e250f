package override

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// What overrides may cost.
const (
	// MaxOperations of one patch.
	MaxOperations = 1000
	// MaxBytes of a document before and after a patch, with its YAML aliases
	// expanded.
	MaxBytes = 3 << 20
	// MaxWork is how many bytes the overrides of one manifest may read as
	// documents and write, all in all.
	MaxWork = 64 << 20
)

// What a rule must not do.
var (
	// ErrTooMany means that a patch has more than MaxOperations.
	ErrTooMany = fmt.Errorf("more than %d operations: split the rule", MaxOperations)
	// ErrTooLarge means that a document exceeds MaxBytes.
	ErrTooLarge = fmt.Errorf("document of more than %d bytes", MaxBytes)
	// ErrTooMuch means that the overrides of a manifest exceed MaxWork.
	ErrTooMuch = fmt.Errorf("overrides that read and write more than %d bytes for one manifest: patch a document in one rule", MaxWork)
	// ErrIdentity means that the manifest would become another object.
	ErrIdentity = errors.New("an override must not change apiVersion, kind, name or namespace: propagate another template instead")
)

// editor changes one manifest.
type editor struct {
	obj *unstructured.Unstructured
	// left is how many bytes may still be read or written.
	left int
	// secret says that errors must not repeat what the manifest holds: they go to
	// events and statuses, which more people read than Secrets.
	secret bool
	// manifestSecret says that a Kustomization put text of a Secret into the manifest.
	manifestSecret bool
}

// spend takes n bytes off what is left.
func (e *editor) spend(n int) error {
	if e.left -= n; e.left < 0 {
		return ErrTooMuch
	}
	return nil
}

// newEditor returns an editor of obj.
func newEditor(obj *unstructured.Unstructured) *editor {
	return &editor{obj: obj, left: MaxWork, secret: obj.GetAPIVersion() == "v1" && obj.GetKind() == "Secret", manifestSecret: holdsSecrets(obj)}
}

// place is where in a rule, and in the manifest, something happens.
type place struct{ overrider, path string }

// rule runs the overriders of one rule, kind by kind in their fixed order.
func (e *editor) rule(o *policyv1alpha1.Overriders) *Error {
	before := identityOf(e.obj)
	where, err := e.overriders(o)
	if err == nil && identityOf(e.obj) != before {
		where, err = place{overrider: culprits(o)}, ErrIdentity
	}
	if err != nil {
		return &Error{Overrider: where.overrider, Path: where.path, Err: err}
	}
	return nil
}

// culprits names the overriders that could have changed an identity.
func culprits(o *policyv1alpha1.Overriders) string {
	switch {
	case len(o.Plaintext) > 0:
		return "plaintext"
	case len(o.FieldOverrider) > 0:
		return "fieldOverrider"
	default:
		return "imageOverrider"
	}
}

func (e *editor) overriders(o *policyv1alpha1.Overriders) (place, error) {
	for i := range o.ImageOverrider {
		if path, err := e.image(&o.ImageOverrider[i]); err != nil {
			return place{at("imageOverrider", i), path}, err
		}
	}
	for i := range o.CommandOverrider {
		if path, err := e.strings("command", &o.CommandOverrider[i]); err != nil {
			return place{at("commandOverrider", i), path}, err
		}
	}
	for i := range o.ArgsOverrider {
		if path, err := e.strings("args", &o.ArgsOverrider[i]); err != nil {
			return place{at("argsOverrider", i), path}, err
		}
	}
	for i := range o.LabelsOverrider {
		if err := e.metadata("labels", &o.LabelsOverrider[i]); err != nil {
			return place{at("labelsOverrider", i), "/metadata/labels"}, err
		}
	}
	for i := range o.AnnotationsOverrider {
		if err := e.metadata("annotations", &o.AnnotationsOverrider[i]); err != nil {
			return place{at("annotationsOverrider", i), "/metadata/annotations"}, err
		}
	}
	for i := range o.FieldOverrider {
		if err := e.field(&o.FieldOverrider[i]); err != nil {
			return place{at("fieldOverrider", i), o.FieldOverrider[i].FieldPath}, err
		}
	}
	return e.plaintext(o.Plaintext)
}

func at(field string, i int) string { return fmt.Sprintf("%s[%d]", field, i) }

// identity is what makes a manifest the object that it is.
type identity struct{ apiVersion, kind, namespace, name string }

func identityOf(obj *unstructured.Unstructured) identity {
	return identity{obj.GetAPIVersion(), obj.GetKind(), obj.GetNamespace(), obj.GetName()}
}

func unknownOperator(op policyv1alpha1.OverriderOperator) error {
	return fmt.Errorf("operator %q is not one of those allowed here", op)
}
