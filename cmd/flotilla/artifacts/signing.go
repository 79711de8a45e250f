package artifacts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/sources/cosign/signing"
	"github.com/flotilla-io/flotilla/sources/oci"
	"github.com/flotilla-io/flotilla/sources/oci/push"
)

// passwordVariable has the password of the private key, as with cosign.
const passwordVariable = "COSIGN_PASSWORD"

// Forms of signatures.
const (
	formBundle = "bundle"
	formSimple = "simple"
)

// signingFlags are the flags about a signature.
type signingFlags struct {
	wanted    bool
	key, form string
}

func (f *signingFlags) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.wanted, "sign", false, "sign the artifact with the private key of --key")
	flags.StringVar(&f.key, "key", "", "file with the private key, as cosign generate-key-pair writes it; its password is in $"+passwordVariable)
	flags.StringVar(&f.form, "signature-format", formBundle, "bundle, as cosign 3 signs, or simple, as cosign 2 does")
	_ = cmd.RegisterFlagCompletionFunc("signature-format", cobra.FixedCompletions([]string{formBundle, formSimple}, cobra.ShellCompDirectiveNoFileComp))
}

// read reads the private key; nil if nothing is to be signed.
func (f *signingFlags) read() (*signing.Key, error) {
	switch {
	case !f.wanted && f.key != "":
		return nil, command.Usage(errors.New("--key is for --sign: add that"))
	case !f.wanted:
		return nil, nil
	case f.key == "":
		return nil, command.Usage(errors.New("--key is missing: the file with the private key, as cosign generate-key-pair writes it"))
	case strings.Contains(f.key, "://"):
		return nil, command.Usage(fmt.Errorf("--key %s is no file, and keys are read from files only: push without --sign, and sign with cosign", f.key))
	case f.form != formBundle && f.form != formSimple:
		return nil, command.Usage(fmt.Errorf("there is no --signature-format %s: it is bundle or simple", f.form))
	}
	text, err := os.ReadFile(f.key)
	if err != nil {
		return nil, fmt.Errorf("read --key: %w", err)
	}
	key, err := signing.Parse(text, []byte(os.Getenv(passwordVariable)))
	if errors.Is(err, signing.ErrPassword) {
		return nil, fmt.Errorf("%s: %w: put its password into $%s", f.key, err, passwordVariable)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.key, err)
	}
	return &key, nil
}

// signer signs artifacts with one key.
type signer struct {
	key   *signing.Key
	form  string
	clock clock.Clock
}

// sign signs the artifact of a digest, unless the key has signed it before in the same form: whoever pushes the same again would
// add a signature each time.
func (s signer) sign(ctx context.Context, at *place, to push.Repository, digest string) (signedBefore bool, err error) {
	if s.form == formSimple {
		return s.simple(ctx, at, to, digest)
	}
	there, err := at.remote.Signatures(digest).Bundles(ctx)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(there, func(of oci.Signature) bool { return s.key.InBundle(digest, of.Content) }) {
		return true, nil
	}
	bundle, err := s.key.Bundle(digest)
	if err != nil {
		return false, err
	}
	return false, to.Attach(ctx, digest, push.Attachment{MediaType: signing.BundleType, Content: bundle, Annotations: map[string]string{
		"dev.sigstore.bundle.content": "dsse-envelope", "dev.sigstore.bundle.predicateType": signing.Predicate,
	}}, s.clock.Now())
}

func (s signer) simple(ctx context.Context, at *place, to push.Repository, digest string) (signedBefore bool, err error) {
	there, err := at.remote.Signatures(digest).Simple(ctx)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(there, func(of oci.Signature) bool { return s.key.InSimple(digest, of.Content, of.Annotations) }) {
		return true, nil
	}
	text, annotations, err := s.key.Simple(at.name, digest)
	if err != nil {
		return false, err
	}
	return false, to.Append(ctx, digest, push.Attachment{MediaType: signing.SimpleType, Content: text, Annotations: annotations})
}
