package builder

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/places"
	"github.com/flotilla-io/flotilla/reconciler/apply/undecrypted"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/secrets"
	"github.com/flotilla-io/flotilla/sources/build"
	"github.com/flotilla-io/flotilla/sources/build/sealed"
	"github.com/flotilla-io/flotilla/sources/sops"
)

// decryption opens the encrypted files of one build. The keys stay in it: what is built elsewhere gets files that are open.
type decryption struct {
	keys   *sops.Keys // nil if the Kustomization names none
	secret client.ObjectKey
	// missing says why there are no keys.
	missing string
	// standsIn is called with each encrypted file, which is not opened then; nil to open it.
	standsIn func(file string)
	reveal   func(text string)
	// opened are the values of all files that were opened, and hidden the same, to be left out of texts.
	opened map[string]bool
	hidden secrets.Values
	// plain are names that are no secret, and spare is called with texts that are made of them; it may be nil.
	plain identities
	spare func(text string)
}

// decryptionOf reads the keys of a Kustomization, as the account that it acts as.
func (o Options) decryptionOf(ctx context.Context, in Input) (*decryption, error) {
	d := &decryption{standsIn: in.Encrypted, reveal: in.Reveal, opened: map[string]bool{}, plain: identitiesFor(in), spare: in.Spare}
	spec := in.Kustomization.Spec.Decryption
	switch {
	case spec == nil:
		d.missing = undecrypted.WhereUnset
		return d, nil
	case in.Encrypted != nil:
		return d, nil
	case spec.SecretRef == nil:
		d.missing = undecrypted.WhereUnnamed
		return d, nil
	}
	d.secret = client.ObjectKey{Namespace: in.Kustomization.Namespace, Name: spec.SecretRef.Name}
	var secret corev1.Secret
	err := in.As.Get(ctx, d.secret, &secret)
	if apierrors.IsNotFound(err) {
		return nil, loop.Waiting(meta.BuildFailedReason, min(in.Retry, awaited), errors.New(undecrypted.WhereMissing(d.secret)))
	}
	if err != nil {
		return nil, fmt.Errorf("read the Secret %s: %w", d.secret, err)
	}
	if d.keys, err = sops.ParseKeys(secret.Data); err != nil {
		return nil, loop.Waiting(meta.BuildFailedReason, in.Retry, undecrypted.WhereUnusable(d.secret, err))
	}
	if o.Services != nil {
		d.keys.Serve(waiting{o.Services(secret.Data)})
	}
	return d, nil
}

// opener returns what opens the files of the source, until its context ends.
func (d *decryption) opener(ctx context.Context) sealed.Opener {
	return func(name string, content []byte) *sealed.File {
		file := d.open(ctx, name, content)
		if file != nil && file.Fault == "" {
			d.plain.read(content)
		}
		return file
	}
}

// called keeps what objects are called in messages, as far as it is no secret.
func (d *decryption) called(objects []*unstructured.Unstructured) {
	if len(d.opened) == 0 {
		return
	}
	for _, text := range d.plain.textsFor(objects) {
		d.hidden.Spare(text)
		if d.spare != nil {
			d.spare(text)
		}
	}
}

// open opens an encrypted file; nil for one that is not.
func (d *decryption) open(ctx context.Context, name string, content []byte) *sealed.File {
	file, err := sops.Read(content)
	switch {
	case err != nil:
		return &sealed.File{Fault: err.Error()}
	case file == nil:
		return nil
	case d.missing != "":
		return &sealed.File{Fault: fmt.Sprintf("it is encrypted with SOPS for %s, and %s", file.Recipients(), d.missing)}
	}
	var plain sops.Plain
	if d.standsIn != nil {
		d.standsIn(name)
		plain, err = file.Standing()
	} else {
		plain, err = file.Open(ctx, d.keys)
	}
	switch {
	case errors.Is(err, sops.ErrService):
		return &sealed.File{NoKey: true, Fault: undecrypted.WhereRefused(d.secret, err)}
	case errors.Is(err, sops.ErrNoKey):
		return &sealed.File{NoKey: true, Fault: fmt.Sprintf("%s, and the Secret %s %s, or add a recipient with sops updatekeys", err, d.secret, d.keysThere())}
	case err != nil:
		return &sealed.File{Fault: err.Error()}
	}
	for _, value := range plain.Values {
		d.hide(value)
	}
	return &sealed.File{Content: plain.Content, Data: plain.Data, Values: plain.Values}
}

// keysThere says which keys there are, and that one is missing.
func (d *decryption) keysThere() string {
	names := d.keys.Names()
	if len(names) == 0 {
		return "has no age or OpenPGP key: add the one that is missing"
	}
	return "has the private key of " + strings.Join(names, ", ") + ": add the one that is missing"
}

// waiting asks a service without holding a place of its tenant.
type waiting struct{ sops.Service }

// Unwrap implements sops.Service.
func (w waiting) Unwrap(ctx context.Context, of sops.Recipient) (key []byte, err error) {
	places.Outside(ctx, func(ctx context.Context) { key, err = w.Service.Unwrap(ctx, of) })
	return key, err
}

// hide keeps a value out of all texts.
func (d *decryption) hide(value string) {
	d.opened[value] = true
	d.hidden.Keep(value)
	if d.reveal != nil {
		d.reveal(value)
	}
}

// finish opens the files that Secrets hold, as base64, and hides what is in the data of those that were encrypted.
func (d *decryption) finish(ctx context.Context, objects []*unstructured.Unstructured) error {
	if d.keys == nil {
		return nil
	}
	for _, obj := range objects {
		data, _ := obj.Object["data"].(map[string]any)
		if obj.GroupVersionKind() != (schema.GroupVersionKind{Version: "v1", Kind: "Secret"}) {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(data)) {
			text, _ := data[key].(string)
			content, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				continue // prepare reports it
			}
			if d.opened[text] {
				d.hide(string(content))
			}
			plain, err := d.decrypt(ctx, key, content)
			if err != nil {
				return fmt.Errorf("%s: data.%s: %w", inventory.Describe(inventory.IDOf(obj)), key, err)
			}
			if plain != nil {
				data[key] = base64.StdEncoding.EncodeToString(plain)
			}
		}
	}
	return nil
}

// decrypt opens a file that a Secret holds; nil for one that is not encrypted.
func (d *decryption) decrypt(ctx context.Context, key string, content []byte) ([]byte, error) {
	file := d.open(ctx, key, content)
	switch {
	case file == nil:
		return nil, nil
	case file.NoKey:
		return nil, fmt.Errorf("%w: %s", sealed.ErrNoKey, file.Fault)
	case file.Fault != "":
		return nil, fmt.Errorf("%w: %s", sealed.ErrSealed, file.Fault)
	case file.Data != nil && !strings.HasSuffix(key, "json"):
		return file.Data, nil
	default:
		return file.Content, nil
	}
}

// quoted is a name in the error of a variable.
var quoted = regexp.MustCompile(`"[A-Za-z0-9_]+"`)

// clean returns an error of a build without what was encrypted: kustomize quotes it, and a part of it may look like a variable,
// whose name is quoted.
func (d *decryption) clean(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if errors.Is(err, build.ErrSubstitute) {
		text = quoted.ReplaceAllStringFunc(text, func(name string) string {
			if !d.holds(strings.Trim(name, `"`)) {
				return name
			}
			return "a name that stands in what was decrypted"
		})
	}
	if text = d.hidden.Hide(text); text != err.Error() {
		return &cleaned{err, text}
	}
	return err
}

// holds reports whether a text is part of what was decrypted.
func (d *decryption) holds(text string) bool {
	for value := range d.opened {
		if strings.Contains(value, text) {
			return true
		}
	}
	return false
}

// cleaned is an error in words that may be shown.
type cleaned struct {
	error
	text string
}

// Error implements error.
func (c *cleaned) Error() string { return c.text }

// Unwrap returns the error, for what is decided by it.
func (c *cleaned) Unwrap() error { return c.error }
