package ociserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// Media types of what cosign pushes.
const (
	Bundle = "application/vnd.dev.sigstore.bundle.v0.3+json"
	Simple = "application/vnd.dev.cosign.simplesigning.v1+json"
	index  = "application/vnd.oci.image.index.v1+json"
	empty  = "application/vnd.oci.empty.v1+json"
)

// Text is a text that is signed, and what stands beside it.
type Text struct {
	Content     []byte
	Annotations map[string]string
}

func (s *Server) blob(ctx context.Context, repository string, content []byte) error {
	return s.put(ctx, http.MethodPost, "/v2/"+repository+"/blobs/uploads/?digest="+digestOf(content), "application/octet-stream", content)
}

// document pushes a manifest or an index under a tag, or, without one, by its digest, which it returns.
func (s *Server) document(ctx context.Context, repository, tag, mediaType string, content map[string]any) (string, int, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return "", 0, fmt.Errorf("push %s:%s: %w", repository, tag, err)
	}
	if tag == "" {
		tag = digestOf(text)
	}
	return digestOf(text), len(text), s.put(ctx, http.MethodPut, "/v2/"+repository+"/manifests/"+tag, mediaType, text)
}

// PushTexts pushes signatures of the artifact of a digest as cosign 2 does, in place of those that are there.
func (s *Server) PushTexts(ctx context.Context, repository, digest string, texts ...Text) error {
	layers := []any{}
	for _, text := range texts {
		if err := s.blob(ctx, repository, text.Content); err != nil {
			return err
		}
		layers = append(layers, map[string]any{"mediaType": Simple, "digest": digestOf(text.Content), "size": len(text.Content), "annotations": text.Annotations})
	}
	if err := s.blob(ctx, repository, []byte("{}")); err != nil {
		return err
	}
	_, _, err := s.document(ctx, repository, strings.Replace(digest, ":", "-", 1)+".sig", Manifest, map[string]any{
		"schemaVersion": 2, "mediaType": Manifest, "layers": layers,
		"config": map[string]any{"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digestOf([]byte("{}")), "size": 2},
	})
	return err
}

// PushBundles pushes signatures of the artifact of a digest as cosign 3 does: each as an artifact that refers to it. They stand in
// the tag for lists, in place of those that are there; and, where the registry keeps lists itself, in those.
func (s *Server) PushBundles(ctx context.Context, repository, digest string, bundles ...[]byte) error {
	manifests := []any{}
	for _, bundle := range bundles {
		for _, blob := range [][]byte{bundle, []byte("{}")} {
			if err := s.blob(ctx, repository, blob); err != nil {
				return err
			}
		}
		of, size, err := s.document(ctx, repository, "", Manifest, map[string]any{
			"schemaVersion": 2, "mediaType": Manifest, "artifactType": Bundle,
			"config":  map[string]any{"mediaType": empty, "digest": digestOf([]byte("{}")), "size": 2},
			"layers":  []any{map[string]any{"mediaType": Bundle, "digest": digestOf(bundle), "size": len(bundle)}},
			"subject": map[string]any{"mediaType": Manifest, "digest": digest, "size": 1},
		})
		if err != nil {
			return err
		}
		manifests = append(manifests, map[string]any{"mediaType": Manifest, "artifactType": Bundle, "digest": of, "size": size})
	}
	_, _, err := s.document(ctx, repository, strings.Replace(digest, ":", "-", 1), index, map[string]any{"schemaVersion": 2, "mediaType": index, "manifests": manifests})
	return err
}

// Notary is the media type of the configuration of a signature of Notation.
const Notary = "application/vnd.cncf.notary.signature"

// Envelope is a signature of Notation.
type Envelope struct {
	MediaType string
	Content   []byte
}

// PushEnvelopes pushes signatures of the artifact of a digest as Notation does, as PushBundles does those of cosign.
func (s *Server) PushEnvelopes(ctx context.Context, repository, digest string, envelopes ...Envelope) error {
	manifests := []any{}
	for _, envelope := range envelopes {
		for _, blob := range [][]byte{envelope.Content, []byte("{}")} {
			if err := s.blob(ctx, repository, blob); err != nil {
				return err
			}
		}
		of, size, err := s.document(ctx, repository, "", Manifest, map[string]any{
			"schemaVersion": 2, "mediaType": Manifest,
			"config":  map[string]any{"mediaType": Notary, "digest": digestOf([]byte("{}")), "size": 2},
			"layers":  []any{map[string]any{"mediaType": envelope.MediaType, "digest": digestOf(envelope.Content), "size": len(envelope.Content)}},
			"subject": map[string]any{"mediaType": Manifest, "digest": digest, "size": 1},
		})
		if err != nil {
			return err
		}
		manifests = append(manifests, map[string]any{"mediaType": Manifest, "artifactType": Notary, "digest": of, "size": size})
	}
	_, _, err := s.document(ctx, repository, strings.Replace(digest, ":", "-", 1), index, map[string]any{"schemaVersion": 2, "mediaType": index, "manifests": manifests})
	return err
}
