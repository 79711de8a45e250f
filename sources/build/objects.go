package build

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-io/flotilla/sources/build/disclosure"
	"github.com/flotilla-io/flotilla/sources/build/order"
	"github.com/flotilla-io/flotilla/sources/build/scripts"
)

// SubstituteKey is a label or annotation of Flux: with the value
// SubstituteDisabled, the variables of an object are not replaced.
const (
	SubstituteKey      = "kustomize.toolkit.fluxcd.io/substitute"
	SubstituteDisabled = "disabled"
)

// objects returns what was built as objects, with variables replaced and metadata
// added, checked and sorted.
func (b *Builder) objects(ctx context.Context, built []*yaml.Node, in Input, texts *disclosure.Texts) ([]*unstructured.Unstructured, error) {
	if len(built) > b.limits.Objects {
		return nil, fmt.Errorf("%w: %d objects, %d are allowed", ErrTooLarge, len(built), b.limits.Objects)
	}
	spec := in.Spec
	variables, err := newVariables(in)
	if err != nil {
		return nil, err
	}
	out := make([]*unstructured.Unstructured, 0, len(built))
	for _, node := range built {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		object, err := b.object(node, variables, texts, spec.SecretAnnotation)
		if err != nil {
			return nil, err
		}
		merge(object.GetLabels, object.SetLabels, spec.Labels)
		merge(object.GetAnnotations, object.SetAnnotations, spec.Annotations)
		out = append(out, object)
	}
	slices.SortStableFunc(out, order.Compare)
	return out, distinct(out)
}

func (b *Builder) object(node *yaml.Node, variables *variables, texts *disclosure.Texts, annotation SecretAnnotation) (*unstructured.Unstructured, error) {
	id := text(child(node, "kind")) + " " + text(child(child(node, "metadata"), "name"))
	in := reader{left: b.limits.Document, depth: 2 * b.limits.Depth}
	content, err := in.value(node)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", id, err)
	}
	mark := texts.MarkFor(content, annotation.InName, annotation.InFields)
	if variables != nil && !keepsVariables(content) {
		rest, restore := scripts.Without(content)
		if own := variables.annotationFor(rest); mark != annotation.InName && own != "" {
			mark = own
		}
		if content, err = variables.replace(rest, b.limits.Document); err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		restore(content)
	}
	fields, ok := content.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s: %w: it is not a Kubernetes object", id, ErrInvalid)
	}
	object := &unstructured.Unstructured{Object: fields}
	switch {
	case object.GetAPIVersion() == "" || object.GetKind() == "":
		return nil, fmt.Errorf("%s: %w: apiVersion or kind is missing", id, ErrInvalid)
	case object.GetName() == "":
		return nil, fmt.Errorf("%s: %w: metadata.name is missing", id, ErrInvalid)
	case strings.ContainsFunc(object.GetName()+object.GetNamespace(), strange):
		return nil, fmt.Errorf("%q: %w: the name holds characters that cannot be seen", id, ErrInvalid)
	}
	if mark != "" && annotation.Key != "" {
		merge(object.GetAnnotations, object.SetAnnotations, map[string]string{annotation.Key: mark})
	}
	return object, nil
}

// strange reports whether a character has no place in names, and would spoil
// messages.
func strange(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar
}

func merge(get func() map[string]string, set func(map[string]string), extra map[string]string) {
	if len(extra) == 0 {
		return
	}
	all := get()
	if all == nil {
		all = make(map[string]string, len(extra))
	}
	for k, v := range extra {
		all[k] = v
	}
	set(all)
}

// keepsVariables reports whether the variables of an object are not replaced:
// where it asks for that, and for definitions of kinds, whose descriptions are
// full of examples.
func keepsVariables(content any) bool {
	fields, _ := content.(map[string]any)
	o := unstructured.Unstructured{Object: fields}
	return o.GetKind() == "CustomResourceDefinition" ||
		o.GetLabels()[SubstituteKey] == SubstituteDisabled || o.GetAnnotations()[SubstituteKey] == SubstituteDisabled
}

// distinct returns an error if an object exists twice, even under two API
// versions.
func distinct(objects []*unstructured.Unstructured) error {
	seen := make(map[string]bool, len(objects))
	for _, o := range objects {
		id := o.GroupVersionKind().GroupKind().String() + " " + o.GetNamespace() + "/" + o.GetName()
		if seen[id] {
			return fmt.Errorf("%s %s: %w; remove one, or give it another name or namespace", o.GetKind(), strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/"), ErrDuplicate)
		}
		seen[id] = true
	}
	return nil
}
