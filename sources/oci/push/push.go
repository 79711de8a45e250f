package push

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/sources/oci"
)

// Media types of artifacts.
const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.cncf.flux.config.v1+json"
	layerType    = "application/vnd.cncf.flux.content.v1.tar+gzip"
)

// Annotations of artifacts.
const (
	created  = "org.opencontainers.image.created"
	source   = "org.opencontainers.image.source"
	revision = "org.opencontainers.image.revision"
)

// config is the configuration of every artifact: it runs nowhere. It has the form that Flux writes, so that equal artifacts have equal digests.
const config = `{"architecture":"","created":"0001-01-01T00:00:00Z","os":"","rootfs":{"type":"layers","diff_ids":null},"config":{}}`

// Artifact is what is pushed.
type Artifact struct {
	// Layer is a gzipped tar.
	Layer []byte
	// Source is where the files come from, and Revision which of them they are.
	Source, Revision string
	// Created is when the artifact was made.
	Created time.Time
	// Annotations are others; they come before those above.
	Annotations map[string]string
}

// Pushed is what has become of an artifact.
type Pushed struct {
	// Digest is that of its manifest.
	Digest string
	// Sent is how many bytes of content the registry did not have.
	Sent int64
	// Unchanged says that the tag had led to the artifact before.
	Unchanged bool
}

// Options configure how things are written. Zero fields take the default.
type Options struct {
	// Clock says when a registry that is busy is asked again. Default: the system's.
	Clock clock.Clock
	// Tries is how often it is asked. Default 5.
	Tries int
	// Progress is told how much of a layer is sent, and how much there is; nil tells nobody.
	Progress func(sent, all int64)
}

// Repository writes to one repository of a registry. It is for one goroutine at a time.
type Repository struct {
	remote *oci.Remote
	opts   Options
}

// To returns what writes to a repository, which has to have been made for that (oci.Access.Writes).
func To(remote *oci.Remote, opts Options) Repository {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if opts.Tries == 0 {
		opts.Tries = 5
	}
	return Repository{remote, opts}
}

// descriptor points at content.
type descriptor struct {
	MediaType    string            `json:"mediaType"`
	Size         int64             `json:"size"`
	Digest       string            `json:"digest"`
	Annotations  map[string]string `json:"annotations,omitempty"`
	ArtifactType string            `json:"artifactType,omitempty"`
}

func describe(mediaType string, content []byte) descriptor {
	sum := sha256.Sum256(content)
	return descriptor{MediaType: mediaType, Size: int64(len(content)), Digest: "sha256:" + hex.EncodeToString(sum[:])}
}

// manifest is that of an artifact or of a signature.
type manifest struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	ArtifactType  string            `json:"artifactType,omitempty"`
	Config        descriptor        `json:"config"`
	Layers        []descriptor      `json:"layers"`
	Subject       *descriptor       `json:"subject,omitempty"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

// Push pushes an artifact, and has a tag lead to it. Errors: those of oci.Send.
func (r Repository) Push(ctx context.Context, tag string, a Artifact) (Pushed, error) {
	says := map[string]string{created: a.Created.UTC().Format(time.RFC3339), source: a.Source, revision: a.Revision}
	maps.Copy(says, a.Annotations)
	content, err := json.Marshal(manifest{
		SchemaVersion: 2, MediaType: manifestType, Annotations: says,
		Config: describe(configType, []byte(config)), Layers: []descriptor{describe(layerType, a.Layer)},
	})
	if err != nil {
		return Pushed{}, fmt.Errorf("push %s: %w", tag, err)
	}
	out := Pushed{Digest: describe(manifestType, content).Digest}
	if out.Unchanged, err = r.leads(ctx, tag, out.Digest); err != nil || out.Unchanged {
		return out, err
	}
	for _, blob := range [][]byte{a.Layer, []byte(config)} {
		sent, err := r.blob(ctx, blob)
		if err != nil {
			return Pushed{}, fmt.Errorf("push the layer: %w", err)
		}
		out.Sent += sent
	}
	if _, err := r.put(ctx, tag, manifestType, content); err != nil {
		return Pushed{}, fmt.Errorf("push the manifest: %w", err)
	}
	return out, nil
}

// leads reports whether a tag leads to a digest.
func (r Repository) leads(ctx context.Context, tag, digest string) (bool, error) {
	var has oci.Target
	err := r.persist(ctx, func() (err error) {
		has, err = r.remote.Resolve(ctx, oci.Ref{Tag: tag})
		return err
	})
	if errors.Is(err, oci.ErrNotFound) {
		return false, nil
	}
	return has.Digest == digest, err
}

// Tag has a tag lead to the artifact of a digest that the repository has; it reports whether it did before. Errors: those of oci.Send.
func (r Repository) Tag(ctx context.Context, digest, tag string) (unchanged bool, err error) {
	if unchanged, err = r.leads(ctx, tag, digest); err != nil || unchanged {
		return unchanged, err
	}
	var mediaType string
	var content []byte
	err = r.persist(ctx, func() (err error) {
		mediaType, content, err = oci.Raw(ctx, r.remote, digest)
		return err
	})
	if err == nil {
		_, err = r.put(ctx, tag, mediaType, content)
	}
	if err != nil {
		return false, fmt.Errorf("have the tag %s lead to %s: %w", tag, digest, err)
	}
	return false, nil
}

// put puts a manifest or an index under a tag or its digest.
func (r Repository) put(ctx context.Context, reference, mediaType string, content []byte) (http.Header, error) {
	return r.send(ctx, oci.Request{
		Method: http.MethodPut, At: r.remote.Path("manifests", reference), ContentType: mediaType,
		Body: func() io.Reader { return bytes.NewReader(content) }, Size: int64(len(content)),
	})
}
