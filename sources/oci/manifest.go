package oci

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Media types of manifests.
const (
	ociManifest    = "application/vnd.oci.image.manifest.v1+json"
	ociIndex       = "application/vnd.oci.image.index.v1+json"
	dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	dockerIndex    = "application/vnd.docker.distribution.manifest.list.v2+json"
)

// accepted are the media types that are asked for.
const accepted = ociManifest + "," + ociIndex + "," + dockerManifest + "," + dockerIndex

// Descriptor points at content.
type Descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int64  `json:"size"`

	// ArtifactType is of what kind the manifest is that it points at, and Annotations are whatever the author wrote.
	ArtifactType string            `json:"artifactType"`
	Annotations  map[string]string `json:"annotations"`

	Platform *struct {
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
	} `json:"platform"`
}

// Manifest is an artifact: its layers, and what it says of itself.
type Manifest struct {
	// Layers are in their order.
	Layers []Descriptor
	// Annotations are whatever the author wrote; anybody may be the author.
	Annotations map[string]string
}

// document is a manifest or an index.
type document struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	Layers        []Descriptor      `json:"layers"`
	Manifests     []Descriptor      `json:"manifests"`
	Annotations   map[string]string `json:"annotations"`
}

// parse reads a manifest or an index of the media type that the registry says. It returns the manifest; or, for an index, the
// manifest that it leads to.
func parse(mediaType string, content []byte) (m Manifest, next *Descriptor, err error) {
	var doc document
	decoder := json.NewDecoder(bytes.NewReader(content))
	if err := decoder.Decode(&doc); err != nil || decoder.More() {
		return m, nil, fmt.Errorf("%w: the manifest is no JSON that is understood", ErrMalformed)
	}
	mediaType, _, _ = strings.Cut(mediaType, ";")
	if doc.MediaType != "" {
		mediaType = doc.MediaType // which the digest vouches for
	}
	index := len(doc.Manifests) > 0
	switch {
	case doc.SchemaVersion != 2:
		return m, nil, fmt.Errorf("%w: the manifest has a schema version that is not understood: 2 is", ErrMalformed)
	case index && len(doc.Layers) > 0:
		return m, nil, fmt.Errorf("%w: the manifest says that it is an index as well", ErrMalformed)
	case index && (mediaType == ociIndex || mediaType == dockerIndex):
		next, err := child(doc.Manifests)
		return m, next, err
	case !index && (mediaType == ociManifest || mediaType == dockerManifest):
		return Manifest{Layers: doc.Layers, Annotations: doc.Annotations}, nil, nil
	default:
		return m, nil, fmt.Errorf("%w: what is there is neither a manifest of an artifact nor an index of some", ErrMalformed)
	}
}

// child returns the manifest of an index that is read: the first for linux/amd64, as with Flux.
func child(all []Descriptor) (*Descriptor, error) {
	for _, d := range all {
		if d.Platform == nil || d.Platform.OS == "linux" && d.Platform.Architecture == "amd64" {
			return &d, d.check("a manifest")
		}
	}
	return nil, fmt.Errorf("%w: the index has no manifest for linux/amd64", ErrLayer)
}

// check returns an error if a descriptor points at nothing that can be fetched.
func (d Descriptor) check(what string) error {
	switch {
	case !digests.MatchString(d.Digest):
		return fmt.Errorf("%w: %s is named by something else than a SHA-256 digest", ErrMalformed, what)
	case d.Size < 0:
		return fmt.Errorf("%w: %s has a negative size", ErrMalformed, what)
	default:
		return nil
	}
}

// Layer returns the layer that is read: the first of the media type, or, without one, the first.
func (m Manifest) Layer(mediaType string) (Descriptor, error) {
	for _, d := range m.Layers {
		if mediaType == "" || d.MediaType == mediaType {
			return d, d.check("a layer")
		}
	}
	if mediaType == "" {
		return Descriptor{}, fmt.Errorf("%w: the artifact has no layers", ErrLayer)
	}
	return Descriptor{}, fmt.Errorf("%w: none of the %d layers has the media type %q of spec.layerSelector", ErrLayer, len(m.Layers), mediaType)
}
