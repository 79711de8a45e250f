package repository

import (
	"context"
	"errors"
	"fmt"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/provenance"
	"github.com/flotilla-io/flotilla/sources/fetching"
	"github.com/flotilla-io/flotilla/sources/git"
	"github.com/flotilla-io/flotilla/sources/git/signed"
	"github.com/flotilla-io/flotilla/sources/signature"
)

// verifier has the phases that find out who signed what was fetched.
type verifier struct {
	hub   client.Reader
	clock clock.PassiveClock
}

// trust reads the keys whose signatures count, if spec.verify asks for signatures.
func (v verifier) trust(ctx context.Context, s *state) (loop.Next, error) {
	verify := s.object.Spec.Verification
	if verify == nil {
		return loop.Next{}, nil
	}
	key := client.ObjectKey{Namespace: s.object.Namespace, Name: verify.SecretRef.Name}
	var secret corev1.Secret
	err := v.hub.Get(ctx, key, &secret)
	switch {
	case apierrors.IsNotFound(err):
		s.doubted = s.object.Generation != s.object.Status.ObservedGeneration // it may be another one than before
		return loop.Next{}, loop.Waiting(sourcev1.VerificationError, min(s.interval, fetching.Awaited), fmt.Errorf("the Secret %s of spec.verify.secretRef is not there: create it with the public keys whose signatures count", key))
	case err != nil:
		return loop.Next{}, fmt.Errorf("read Secret %s: %w", key, err)
	}
	s.keys, err = signature.Parse(secret.Data)
	if s.doubted = !v.vouched(s); err != nil {
		return loop.Next{}, loop.Waiting(sourcev1.VerificationError, s.interval, fmt.Errorf("Secret %s: %w", key, err))
	}
	return loop.Next{}, nil
}

// vouched reports whether the artifact that is stored was verified as the spec asks, by keys that count now.
func (v verifier) vouched(s *state) bool {
	fingerprints, all := provenance.Keys(s.object)
	for _, key := range fingerprints {
		all = all && s.keys.Has(key, v.clock.Now())
	}
	return all
}

// verify finds out who signed the commit and the tag that were fetched, as far as the spec asks for it.
func (v verifier) verify(s *state, tree *git.Tree) error {
	verify := s.object.Spec.Verification
	if verify == nil {
		return nil
	}
	if verify.VerifyTag() {
		tag, err := tree.SignedTag()
		if s.signed.tag, err = v.signer(s, "tag", tag, err); err != nil {
			return err
		}
		if name, isTag := strings.CutPrefix(s.commit.Reference, tags); isTag && name != tag.Name {
			return s.refused(provenance.UnsignedTag, "the tag %s was signed as %q: somebody has given it another name", name, tag.Name)
		}
	}
	if verify.VerifyHEAD() {
		commit, err := tree.SignedCommit()
		if s.signed.commit, err = v.signer(s, "commit", commit, err); err != nil {
			return err
		}
	}
	return nil
}

// signer returns who signed what was fetched, or why that is not known.
func (v verifier) signer(s *state, what string, object signed.Object, err error) (*provenance.Signature, error) {
	switch {
	case errors.Is(err, git.ErrNoTag) && s.commit.Tag != "":
		return nil, loop.Retry(sourcev1.GitOperationFailedReason, fmt.Errorf("the tag of %s was moved during the fetch", s.commit.Revision().Short()))
	case errors.Is(err, git.ErrNoTag) && strings.HasPrefix(s.commit.Reference, tags):
		name := strings.TrimPrefix(s.commit.Reference, tags)
		return nil, s.refused(provenance.UnsignedTag, "%s is a lightweight tag, which nobody can sign: git tag -s -f %s, and push it", name, name)
	case errors.Is(err, git.ErrNoTag):
		return nil, s.refused(provenance.MissingTag, "%s", provenance.NoTag(s.object.Spec.Verification))
	case err != nil:
		return nil, s.classify(err)
	}
	who, err := s.keys.Verify(object.Text, object.Signature, v.clock.Now())
	if err != nil {
		kind := provenance.UnsignedCommit
		if what == "tag" {
			kind = provenance.UnsignedTag
		}
		return nil, s.refused(kind, "%s", said(what, err))
	}
	return &provenance.Signature{Key: who.Key, Name: who.Name, Signed: who.Signed}, nil
}

// tags is how the names of tags begin.
const tags = "refs/tags/"

// refused returns the error about a revision that is not verified.
func (s *state) refused(kind provenance.Kind, format string, args ...any) error {
	refusal := provenance.Refusal{Revision: s.commit.Revision().String(), Kind: kind, Why: fmt.Sprintf(format, args...)}
	return loop.Waiting(sourcev1.VerificationError, s.interval, errors.New(refusal.Message()))
}

// said returns why something is not verified, with its name for "it".
func said(what string, err error) string {
	text := strings.TrimPrefix(err.Error(), signature.ErrNotVerified.Error()+": ")
	for it, name := range map[string]string{"it ": "the " + what + " ", "its ": "the " + what + "'s "} {
		if rest, ok := strings.CutPrefix(text, it); ok {
			return name + rest
		}
	}
	return text
}
