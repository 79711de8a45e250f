// Package inherited keeps out of conditions and Events what Kustomizations put into other Kustomizations, sources and the like.
//
// In go the values of Secrets that each Kustomization knows, and objects that one of them has applied; out come their words without
// those values. Of an object that says that text of a Secret is in it, whose Kustomization has not run yet in this process, none of
// the texts in its spec and annotations is shown. The package reads and writes no object, but for the words that pass through it.
package inherited

import (
	"errors"
	"regexp"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/secrets"
)

// Known are the values of all Kustomizations of a process. Use New; nil knows none.
type Known struct {
	mu sync.Mutex
	by map[client.ObjectKey]*secrets.Values
}

// New returns Known without any.
func New() *Known { return &Known{by: map[client.ObjectKey]*secrets.Values{}} }

// Learn records what a Kustomization keeps its values in, and adds to them those that it got from the one that applied it.
func (k *Known) Learn(ks client.Object, values *secrets.Values) {
	if k != nil {
		k.mu.Lock()
		k.by[client.ObjectKeyFromObject(ks)] = values
		k.mu.Unlock()
	}
	if !contains(ks) {
		values.Doubt(nil)
		return
	}
	from := k.from(ks)
	if from == nil || from == values || from.None() {
		values.Doubt(texts(ks))
		return
	}
	values.Doubt(nil)
	values.Adopt(from)
}

// Forget drops what is kept of a Kustomization that is gone.
func (k *Known) Forget(key client.ObjectKey) {
	if k != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.by, key)
	}
}

// contains reports whether text of a Secret is in an object, as its annotation says.
func contains(obj client.Object) bool {
	return obj.GetAnnotations()[gitopsv1alpha1.HoldsSecretsAnnotation] != ""
}

// from returns the values of the Kustomization that applied an object; nil if they are not known.
func (k *Known) from(obj client.Object) *secrets.Values {
	owner, owned := inventory.OwnerOf(obj)
	if k == nil || !owned {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.by[owner]
}

// Hide returns a text about an object without what the object got of Secrets; plain is what stays.
func (k *Known) Hide(obj client.Object, text string, plain ...string) string {
	if !contains(obj) {
		return text
	}
	from := k.from(obj)
	if from == nil || from.None() {
		from = &secrets.Values{}
		from.Doubt(texts(obj))
	}
	return from.Hide(text, plain...)
}

// Clean returns an error about an object without what the object got of Secrets. What it wraps stays for those who look for it.
func (k *Known) Clean(obj client.Object, err error) error {
	if err == nil {
		return nil
	}
	text := k.Hide(obj, err.Error(), revisions(obj)...)
	if text == err.Error() {
		return err
	}
	var reported *loop.Error
	if errors.As(err, &reported) { // its text becomes that of a condition
		out := *reported
		out.Err = &clean{err, text}
		return &out
	}
	return &clean{err, text}
}

// clean is an error in words that may be shown.
type clean struct {
	error
	text string
}

// Error implements error.
func (c *clean) Error() string { return c.text }

// Unwrap returns the error, for what is decided by it.
func (c *clean) Unwrap() error { return c.error }

// words are texts that guard nothing: names of kinds, groups, types and protocols.
var words = regexp.MustCompile(`^(https?|oci|ssh|git|true|false|main|master|latest|default|generic|semver|branch|invalid|value|path|test|replace|remove|\d+|(\d+(h|m|s|ms))+|(apps/|batch/)?v\d+((alpha|beta)\d+)?|[a-z0-9.-]+\.(toolkit\.fluxcd\.io|karmada\.io|flotilla\.io)(/v\w+)?|GitRepository|OCIRepository|Kustomization|ConfigMap|Secret|Deployment|StatefulSet|DaemonSet|Service|Namespace)$`)

// parts are what a text is made of. A name, an address or an expression may be shown in parts.
var parts = regexp.MustCompile(`[^\s/:@?&=,;()'"\[\]{}|<>]+`)

// names are what those are made of.
var names = regexp.MustCompile(`\w+`)

// least is how long a part is at least that is taken for a value.
const least = 4

// texts returns every text that may be shown of an object, in which a value may be.
func texts(obj client.Object) []string {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil
	}
	var out []string
	var add func(any)
	add = func(of any) {
		switch of := of.(type) {
		case map[string]any:
			for key, value := range of {
				if key != gitopsv1alpha1.HoldsSecretsAnnotation && key != gitopsv1alpha1.HoldsSecretsInAnnotation {
					add(value)
				}
			}
		case []any:
			for _, item := range of {
				add(item)
			}
		case string:
			out = append(out, split(of)...)
		}
	}
	add(content["spec"])
	metadata, _ := content["metadata"].(map[string]any)
	add(metadata["annotations"])
	return out
}

// split returns a text and its parts, but for words.
func split(text string) []string {
	found := []string{text}
	for _, part := range parts.FindAllString(text, -1) {
		found = append(found, part)
		found = append(found, names.FindAllString(part, -1)...)
	}
	var out []string
	for n, part := range found {
		if part = strings.TrimSpace(part); !words.MatchString(part) && (n == 0 || len(part) >= least) {
			out = append(out, part)
		}
	}
	return out
}
