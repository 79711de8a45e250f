package push

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/flotilla-io/flotilla/sources/oci"
)

// Media types of what stands beside artifacts.
const (
	indexType       = "application/vnd.oci.image.index.v1+json"
	emptyType       = "application/vnd.oci.empty.v1+json"
	imageConfigType = "application/vnd.oci.image.config.v1+json"
)

// empty is the content of a configuration that says nothing.
const empty = "{}"

// Attachment is content that refers to an artifact.
type Attachment struct {
	MediaType   string
	Content     []byte
	Annotations map[string]string
}

// Attach has some content refer to the artifact of a digest, as cosign 3 has bundles. Where the registry keeps no list of what refers to
// an artifact, it is added to the tag that stands for one: whoever adds to that in the same moment may lose it. Errors: those of
// oci.Send, and oci.ErrMalformed for a tag that is no list.
func (r Repository) Attach(ctx context.Context, digest string, a Attachment, at time.Time) error {
	about, err := subject(ctx, r, digest)
	if err != nil {
		return fmt.Errorf("attach to %s: %w", digest, err)
	}
	says := map[string]string{created: at.UTC().Format(time.RFC3339)}
	maps.Copy(says, a.Annotations)
	content, err := json.Marshal(manifest{
		SchemaVersion: 2, MediaType: manifestType, ArtifactType: a.MediaType, Annotations: says, Subject: &about,
		Config: describe(emptyType, []byte(empty)), Layers: []descriptor{describe(a.MediaType, a.Content)},
	})
	if err != nil {
		return fmt.Errorf("attach to %s: %w", digest, err)
	}
	for _, blob := range [][]byte{a.Content, []byte(empty)} {
		if _, err := r.blob(ctx, blob); err != nil {
			return fmt.Errorf("attach to %s: %w", digest, err)
		}
	}
	own := describe(manifestType, content)
	own.ArtifactType, own.Annotations = a.MediaType, says
	answer, err := r.put(ctx, own.Digest, manifestType, content)
	if err == nil && answer.Get("OCI-Subject") == "" && !lists(ctx, r, digest) {
		err = r.list(ctx, digest, own)
	}
	if err != nil {
		return fmt.Errorf("attach to %s: %w", digest, err)
	}
	return nil
}

// subject describes the artifact of a digest.
func subject(ctx context.Context, r Repository, digest string) (descriptor, error) {
	var out descriptor
	err := r.persist(ctx, func() error {
		mediaType, content, err := oci.Raw(ctx, r.remote, digest)
		mediaType, _, _ = strings.Cut(mediaType, ";")
		out = describe(mediaType, content)
		return err
	})
	return out, err
}

// lists reports whether the registry keeps a list of what refers to an artifact: not all that do say so when something is put.
func lists(ctx context.Context, r Repository, digest string) bool {
	answer, err := r.send(ctx, oci.Request{Method: http.MethodGet, At: r.remote.Path("referrers", digest)})
	return err == nil && strings.HasPrefix(answer.Get("Content-Type"), indexType)
}

// index is the tag that stands for a list.
type index struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	Manifests     []json.RawMessage `json:"manifests"`
}

// list adds to the tag that stands for the list of what refers to an artifact.
func (r Repository) list(ctx context.Context, digest string, own descriptor) error {
	tag := tagOf(digest)
	all := index{SchemaVersion: 2, MediaType: indexType}
	content, err := r.tagged(ctx, tag)
	if err != nil {
		return err
	}
	if content != nil && (json.Unmarshal(content, &all) != nil || all.MediaType != "" && all.MediaType != indexType) {
		return fmt.Errorf("%w: the tag %s is no list", oci.ErrMalformed, tag)
	}
	entry, err := json.Marshal(own)
	if err != nil {
		return err
	}
	all.SchemaVersion, all.MediaType, all.Manifests = 2, indexType, append(all.Manifests, entry)
	if content, err = json.Marshal(all); err != nil {
		return err
	}
	_, err = r.put(ctx, tag, indexType, content)
	return err
}

// tagged returns the manifest of a tag; nil if there is no such tag.
func (r Repository) tagged(ctx context.Context, tag string) (content []byte, err error) {
	err = r.persist(ctx, func() error {
		target, err := r.remote.Resolve(ctx, oci.Ref{Tag: tag})
		if err == nil {
			_, content, err = oci.Raw(ctx, r.remote, target.Digest)
		}
		return err
	})
	if errors.Is(err, oci.ErrNotFound) {
		return nil, nil
	}
	return content, err
}

func tagOf(digest string) string { return strings.Replace(digest, ":", "-", 1) }

// signatures is the manifest of simple signatures, of which the layers are kept as they are.
type signatures struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	Config        descriptor        `json:"config"`
	Layers        []json.RawMessage `json:"layers"`
}

// Append adds a text to the tag that has the simple signatures of the artifact of a digest, as cosign 2 does: whoever adds to that in the
// same moment may lose it. Errors: those of Attach.
func (r Repository) Append(ctx context.Context, digest string, text Attachment) error {
	if err := r.append(ctx, tagOf(digest)+".sig", text); err != nil {
		return fmt.Errorf("sign %s: %w", digest, err)
	}
	return nil
}

func (r Repository) append(ctx context.Context, tag string, text Attachment) error {
	all := signatures{}
	content, err := r.tagged(ctx, tag)
	if err != nil {
		return err
	}
	if content != nil && json.Unmarshal(content, &all) != nil {
		return fmt.Errorf("%w: the tag %s has no signatures", oci.ErrMalformed, tag)
	}
	own := describe(text.MediaType, text.Content)
	own.Annotations = text.Annotations
	layer, err := json.Marshal(own)
	if err != nil {
		return err
	}
	all.Layers = append(all.Layers, layer)
	config, err := configOf(all.Layers)
	if err != nil {
		return err
	}
	all.SchemaVersion, all.MediaType, all.Config = 2, manifestType, describe(imageConfigType, config)
	for _, blob := range [][]byte{text.Content, config} {
		if _, err := r.blob(ctx, blob); err != nil {
			return err
		}
	}
	if content, err = json.Marshal(all); err != nil {
		return err
	}
	_, err = r.put(ctx, tag, manifestType, content)
	return err
}

// configOf returns the configuration of an image with layers, which are not packed.
func configOf(layers []json.RawMessage) ([]byte, error) {
	var out struct {
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
		RootFS       struct {
			Type    string   `json:"type"`
			DiffIDs []string `json:"diff_ids"`
		} `json:"rootfs"`
		Config struct{} `json:"config"`
	}
	out.RootFS.Type = "layers"
	for _, layer := range layers {
		var d descriptor
		if json.Unmarshal(layer, &d) != nil {
			return nil, fmt.Errorf("%w: a signature is described by something that is not understood", oci.ErrMalformed)
		}
		out.RootFS.DiffIDs = append(out.RootFS.DiffIDs, d.Digest)
	}
	return json.Marshal(out)
}
