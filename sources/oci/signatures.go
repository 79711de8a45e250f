package oci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Media types of signatures.
const (
	bundles       = "application/vnd.dev.sigstore.bundle."
	simpleSigning = "application/vnd.dev.cosign.simplesigning.v1+json"
	emptyConfig   = "application/vnd.oci.empty.v1+json"
	notary        = "application/vnd.cncf.notary.signature"
	jose, cose    = "application/jose+json", "application/cose"
)

const (
	// maxSignatures is how many signatures of each form are read of an artifact.
	maxSignatures = 32
	// maxReferrers is how much of what refers to an artifact is looked at.
	maxReferrers = 1000
	// maxBundle and maxPayload are the size of a bundle or an envelope, and of the text of a simple signature, in bytes.
	maxBundle, maxPayload = 1 << 20, 64 << 10
)

// Signature is a signature as cosign or Notation keeps it, which nobody has verified: anybody may have written it.
type Signature struct {
	// Content is a bundle, an envelope, or the text that is signed.
	Content []byte
	// MediaType is that of an envelope; empty for the others.
	MediaType string
	// Annotations are what stands beside the text; nil for the others.
	Annotations map[string]string
}

// Signatures are those of one artifact.
type Signatures struct {
	remote *Remote
	digest string
	unread string
}

// Signatures returns the signatures of the artifact of a digest; it asks for nothing yet.
func (r *Remote) Signatures(digest string) *Signatures {
	return &Signatures{remote: r, digest: digest}
}

// Unread says, to be added to another text, that there may be signatures that were not read; empty if all were.
func (s *Signatures) Unread() string { return s.unread }

// first returns as many as are read of what may be signatures. more says that not all that refers to the artifact was looked at.
func (s *Signatures) first(all []Descriptor, more bool) []Descriptor {
	switch {
	case len(all) > maxSignatures:
		s.many()
	case more:
		s.unread = fmt.Sprintf("; more than %d artifacts refer to it, and the others are not looked at", maxReferrers)
	}
	return all[:min(len(all), maxSignatures)]
}

func (s *Signatures) many() {
	s.unread = fmt.Sprintf("; it has more than %d signatures, and the others are not read", maxSignatures)
}

// Bundles returns the bundles that refer to the artifact, as cosign 3 writes them: by the registry's list of what refers to it, or,
// where it keeps none, by the tag that stands for one. Errors: those of Manifest, and ErrRef.
func (s *Signatures) Bundles(ctx context.Context) ([]Signature, error) {
	return s.read(ctx, ofCosign().of(s))
}

// Envelopes returns the envelopes that refer to the artifact, as Notation writes them, found in the same way. Errors: those of
// Manifest, and ErrRef.
func (s *Signatures) Envelopes(ctx context.Context) ([]Signature, error) {
	return s.read(ctx, ofNotation().of(s))
}

// form is how signatures are kept that refer to an artifact.
type form struct {
	// artifact begins the type of their manifests, and layers the media types of what they consist of.
	artifact string
	layers   []string
	// typed says that the media type is handed on.
	typed bool
	// most is their size in bytes.
	most int64
}

func ofCosign() form { return form{artifact: bundles, layers: []string{bundles}, most: maxBundle} }

func ofNotation() form {
	return form{artifact: notary, layers: []string{jose, cose}, typed: true, most: maxBundle}
}

// of returns how those of an artifact are read.
func (f form) of(s *Signatures) func(context.Context) ([]Signature, error) {
	return func(ctx context.Context) ([]Signature, error) { return s.referring(ctx, f) }
}

// matches reports whether a media type is one of those of the layers.
func (f form) matches(mediaType string) bool {
	return slices.ContainsFunc(f.layers, func(prefix string) bool { return strings.HasPrefix(mediaType, prefix) })
}

// Simple returns the signatures that cosign 2 writes: the layers of a manifest that has the digest as its tag. Errors: those of
// Manifest, and ErrRef.
func (s *Signatures) Simple(ctx context.Context) ([]Signature, error) { return s.read(ctx, s.simple) }

func (s *Signatures) read(ctx context.Context, form func(context.Context) ([]Signature, error)) ([]Signature, error) {
	ctx, cancel := context.WithTimeout(ctx, s.remote.opts.Timeout)
	defer cancel()
	if !digests.MatchString(s.digest) {
		return nil, fmt.Errorf("%w: %q is no digest", ErrRef, s.digest)
	}
	out, err := form(ctx)
	if err != nil {
		return nil, s.remote.about("read the signatures of "+s.digest, err)
	}
	return out, nil
}

func (s *Signatures) referring(ctx context.Context, f form) ([]Signature, error) {
	all, err := s.referrers(ctx, f)
	if err != nil {
		return nil, err
	}
	var out []Signature
	for _, d := range all {
		if err := d.check("a signature"); err != nil {
			return nil, err
		}
		m, next, err := parsed(ctx, s.remote, d.Digest)
		switch {
		case errors.Is(err, ErrNotFound), errors.Is(err, ErrMalformed), err == nil && next != nil:
			continue // it is no signature, and somebody else's may be
		case err != nil:
			return nil, err
		}
		if len(m.Layers) == 0 || !f.matches(m.Layers[0].MediaType) {
			continue
		}
		content, err := s.content(ctx, m.Layers[0], f.most)
		if err != nil {
			return nil, err
		}
		if content == nil {
			continue
		}
		found := Signature{Content: content}
		if f.typed {
			found.MediaType = m.Layers[0].MediaType
		}
		out = append(out, found)
	}
	return out, nil
}

// content returns the bytes of a layer that may be a signature; nil for one that cannot be.
func (s *Signatures) content(ctx context.Context, layer Descriptor, limit int64) ([]byte, error) {
	if layer.check("a signature") != nil || layer.Size > limit {
		return nil, nil
	}
	content, err := s.remote.blob(ctx, layer)
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrDigest) {
		return nil, nil
	}
	return content, err
}

// referrers returns the manifests of signatures that refer to the artifact.
func (s *Signatures) referrers(ctx context.Context, f form) ([]Descriptor, error) {
	var out []Descriptor
	seen := 0
	for next := s.remote.Path("referrers", s.digest); next != nil; {
		page := document{}
		link, err := s.remote.tags(ctx, next, &page)
		if errors.Is(err, ErrNotFound) || errors.Is(err, ErrStatus) {
			return s.fallback(ctx, f)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, f.among(page.Manifests)...)
		if seen += len(page.Manifests); seen > maxReferrers || len(out) > maxSignatures || len(page.Manifests) == 0 {
			return s.first(out, seen > maxReferrers && link != ""), nil
		}
		if next, err = after(next, link); err != nil {
			return nil, err
		}
	}
	return s.first(out, false), nil
}

// among returns those of some manifests that may be such signatures: those that say so, and those of which some registries say
// nothing else than that they have no configuration.
func (f form) among(all []Descriptor) []Descriptor {
	return slices.DeleteFunc(slices.Clone(all), func(d Descriptor) bool {
		return !strings.HasPrefix(d.ArtifactType, f.artifact) && d.ArtifactType != "" && d.ArtifactType != emptyConfig
	})
}

// tag is what the digest is as a tag.
func (s *Signatures) tag() string { return strings.Replace(s.digest, ":", "-", 1) }

// fallback reads the tag that stands for the list of what refers to the artifact.
func (s *Signatures) fallback(ctx context.Context, f form) ([]Descriptor, error) {
	_, content, _, err := s.remote.manifest(ctx, s.tag())
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var index document
	if json.Unmarshal(content, &index) != nil {
		return nil, fmt.Errorf("%w: the list of what refers to %s is no JSON that is understood", ErrMalformed, s.digest)
	}
	out := f.among(index.Manifests[:min(len(index.Manifests), maxReferrers)])
	return s.first(out, len(index.Manifests) > maxReferrers), nil
}

func (s *Signatures) simple(ctx context.Context) ([]Signature, error) {
	mediaType, content, _, err := s.remote.manifest(ctx, s.tag()+".sig")
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m, _, err := parse(mediaType, content)
	if err != nil {
		return nil, err
	}
	var out []Signature
	for _, layer := range m.Layers {
		if layer.MediaType != simpleSigning {
			continue
		}
		if len(out) == maxSignatures {
			s.many()
			break
		}
		content, err := s.content(ctx, layer, maxPayload)
		if err != nil {
			return nil, err
		}
		if content != nil {
			out = append(out, Signature{Content: content, Annotations: layer.Annotations})
		}
	}
	return out, nil
}
