package override

import (
	"fmt"
	"strings"

	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// Image is a container image, taken apart. Empty parts are absent.
type Image struct {
	// Registry is a host with an optional port.
	Registry string
	// Repository is the path below the registry.
	Repository string
	// Tag and Digest may both be given.
	Tag, Digest string
}

// ParseImage takes an image apart. Its first path segment is a registry if it
// has a dot or a colon, or is "localhost".
func ParseImage(s string) (Image, error) {
	if _, err := reference.ParseNormalizedNamed(s); err != nil {
		return Image{}, fmt.Errorf("image %q: %w", s, err)
	}
	var img Image
	rest, digest, _ := strings.Cut(s, "@")
	img.Digest = digest
	if first, path, ok := strings.Cut(rest, "/"); ok && (strings.ContainsAny(first, ".:") || first == "localhost") {
		img.Registry, rest = first, path
	}
	img.Repository, img.Tag, _ = strings.Cut(rest, ":")
	return img, nil
}

// String puts the image together again.
func (i Image) String() string {
	s := i.Repository
	if i.Registry != "" {
		s = i.Registry + "/" + s
	}
	if i.Tag != "" {
		s += ":" + i.Tag
	}
	if i.Digest != "" {
		s += "@" + i.Digest
	}
	return s
}

// change returns the image with one component changed; the result is checked
// by parsing it again.
func (i Image) change(o *policyv1alpha1.ImageOverrider) (Image, error) {
	switch o.Component {
	case policyv1alpha1.Registry:
		return i, edit(&i.Registry, o)
	case policyv1alpha1.Repository:
		return i, edit(&i.Repository, o)
	case policyv1alpha1.Tag:
		return i.changeTag(o)
	default:
		return i, fmt.Errorf("component %q is not Registry, Repository or Tag", o.Component)
	}
}

// changeTag sets a tag, which drops the digest, or a digest, which drops the
// tag: the two would contradict each other.
func (i Image) changeTag(o *policyv1alpha1.ImageOverrider) (Image, error) {
	version := i.Tag
	if version == "" {
		version = i.Digest
	}
	if err := edit(&version, o); err != nil {
		return i, err
	}
	if strings.Contains(version, ":") {
		i.Tag, i.Digest = "", version
	} else {
		i.Tag, i.Digest = version, ""
	}
	return i, nil
}

func edit(part *string, o *policyv1alpha1.ImageOverrider) error {
	switch o.Operator {
	case policyv1alpha1.OverriderOpAdd:
		*part += o.Value
	case policyv1alpha1.OverriderOpReplace:
		*part = o.Value
	case policyv1alpha1.OverriderOpRemove:
		*part = ""
	default:
		return unknownOperator(o.Operator)
	}
	return nil
}

// changeImage returns the text of an image with one component changed.
func changeImage(image string, o *policyv1alpha1.ImageOverrider) (string, error) {
	img, err := ParseImage(image)
	if err != nil {
		return "", err
	}
	img, err = img.change(o)
	if err != nil {
		return "", err
	}
	out := img.String()
	if back, err := ParseImage(out); err != nil || back != img {
		return "", fmt.Errorf("%s of %s %q on %q gives %q, which is not an image", o.Operator, o.Component, o.Value, image, out)
	}
	return out, nil
}

// applyImage changes the images of all containers, or the one at the
// predicate's path. It returns the path that an error is about.
func applyImage(obj *unstructured.Unstructured, o *policyv1alpha1.ImageOverrider) (string, error) {
	if o.Predicate != nil {
		return o.Predicate.Path, changeAt(obj.Object, o.Predicate.Path, func(image string) (string, error) {
			return changeImage(image, o)
		})
	}
	cs, err := containers(obj)
	if err != nil {
		return "", fmt.Errorf("%w: a predicate path is needed", err)
	}
	for i, c := range cs {
		image, ok := c["image"].(string)
		if !ok {
			continue
		}
		if c["image"], err = changeImage(image, o); err != nil {
			return fmt.Sprintf("containers[%d].image", i), err
		}
	}
	return "", nil
}
