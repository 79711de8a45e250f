package override

import (
	"errors"
	"fmt"
	"strings"

	"github.com/distribution/reference"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// maxImage is how long an image may be.
const maxImage = 4096

// errImageLong means that an image exceeds maxImage.
var errImageLong = fmt.Errorf("image of more than %d bytes", maxImage)

// errNoImage is the error about the contents of a Secret, without them.
var errNoImage = errors.New("value is no image, or the result is none: correct the rule")

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
	if len(s) > maxImage {
		return Image{}, errImageLong
	}
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

// change returns the image with one component changed; it may be none any more.
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

// changeImage returns the text of an image with one component changed. A
// registry may come with the beginning of a path, a repository with a registry:
// what counts is that the whole is an image. A tag cannot become anything else.
func changeImage(image string, o *policyv1alpha1.ImageOverrider) (string, error) {
	if len(o.Value) > maxImage {
		return "", errImageLong
	}
	img, err := ParseImage(image)
	if err != nil {
		return "", fmt.Errorf("%w: correct the template", err)
	}
	if img, err = img.change(o); err != nil {
		return "", err
	}
	out := img.String()
	back, err := ParseImage(out)
	switch {
	case errors.Is(err, errImageLong):
		return "", err
	case err != nil, o.Component == policyv1alpha1.Tag && back != img:
		return "", fmt.Errorf("%s of %s %q on %q gives %q, which is no image: correct the value", o.Operator, o.Component, o.Value, image, out)
	}
	return out, nil
}

// image changes the images of all containers, or the one at the predicate's
// path. Kinds whose containers are not known are left as they are without a
// predicate. It returns the path that an error is about.
func (e *editor) image(o *policyv1alpha1.ImageOverrider) (path string, err error) {
	change := func(image string) (string, error) {
		changed, err := changeImage(image, o)
		switch {
		case err == nil:
			err = e.spend(len(changed))
		case e.secret:
			err = errNoImage
		}
		return changed, err
	}
	if o.Predicate != nil {
		return o.Predicate.Path, changeAt(e.obj.Object, o.Predicate.Path, change)
	}
	for _, c := range containers(e.obj) {
		image, ok := c.fields["image"].(string)
		if !ok {
			continue
		}
		if c.fields["image"], err = change(image); err != nil {
			return c.path + "/image", err
		}
	}
	return "", nil
}
