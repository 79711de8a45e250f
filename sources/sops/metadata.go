package sops

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flotilla-io/flotilla/policies/pattern"
)

// metadata is what a file says of how it is encrypted.
type metadata struct {
	recipients []recipient
	// mac is the encrypted hash of all values, and modified is what it is bound to.
	mac, modified string
	// onlyEncrypted says that the hash is of the values alone that are encrypted.
	onlyEncrypted bool
	rule          rule
}

// recipient is a key that a file is encrypted for.
type recipient struct {
	kind, name string
	wrapped    string // the key of the file, encrypted for the recipient
	// fields and context are what a service is asked with that holds the key.
	fields, context map[string]string
}

const (
	kindAge = "age"
	kindPGP = "PGP"
)

// Kinds of recipients whose keys services hold.
const (
	KindAWS   = "AWS KMS"
	KindGCP   = "GCP KMS"
	KindAzure = "Azure Key Vault"
	KindVault = "Vault"
)

// kindOf is a list of recipients in a file: of what kind they are, and which field has their name.
type kindOf struct{ list, kind, name string }

var kinds = []kindOf{
	{"age", kindAge, "recipient"},
	{"pgp", kindPGP, "fp"},
	{"kms", KindAWS, "arn"},
	{"gcp_kms", KindGCP, "resource_id"},
	{"azure_kv", KindAzure, "vault_url"},
	{"hc_vault", KindVault, "vault_address"},
	{"hckms", "Huawei Cloud KMS", "key_id"},
}

// String returns a recipient as people know it.
func (r recipient) String() string {
	if r.kind == kindAge {
		return clip(r.name)
	}
	return strings.TrimSpace(r.kind + " " + clip(r.name))
}

// maxName is how much of a text of a file an error shows, in bytes, and maxRecipients how many recipients.
const (
	maxName       = 80
	maxRecipients = 5
)

func clip(text string) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) > maxName {
		text = strings.ToValidUTF8(text[:maxName], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}

// named lists the recipients of a file for people.
func (m metadata) named() string {
	var out []string
	for i, r := range m.recipients {
		if i == maxRecipients {
			out = append(out, "…")
			break
		}
		out = append(out, r.String())
	}
	if len(out) == 0 {
		return "nobody"
	}
	return strings.Join(out, ", ")
}

// readMetadata reads the metadata of a file, whose scalars are texts.
func readMetadata(raw map[string]any) (metadata, error) {
	text := func(key string) string { s, _ := raw[key].(string); return s }
	m := metadata{mac: text("mac"), onlyEncrypted: strings.EqualFold(text("mac_only_encrypted"), "true")}
	var err error
	if m.recipients, err = readRecipients(raw); err != nil {
		return m, err
	}
	modified, err := time.Parse(time.RFC3339, text("lastmodified"))
	if err != nil {
		return m, invalid("sops.lastmodified is no time")
	}
	m.modified = modified.Format(time.RFC3339)
	m.rule, err = readRule(text)
	return m, err
}

// readRecipients reads whom a file is encrypted for. With an error come those before what is wrong.
func readRecipients(raw map[string]any) ([]recipient, error) {
	holder := raw
	if groups, _ := raw["key_groups"].([]any); len(groups) > 1 {
		return nil, invalid("it needs keys of several groups (key_groups), which is not supported: have one group, and sops rotate it")
	} else if len(groups) == 1 {
		if holder, _ = groups[0].(map[string]any); holder == nil {
			holder = raw
		}
	}
	var out []recipient
	for _, k := range kinds {
		list, _ := holder[k.list].([]any)
		if len(list) > maxListed {
			return out, invalid("it is encrypted for more than %d recipients of one kind", maxListed)
		}
		for _, entry := range list {
			fields, _ := entry.(map[string]any)
			name, _ := fields[k.name].(string)
			wrapped, _ := fields["enc"].(string)
			r := recipient{kind: k.kind, name: name, wrapped: wrapped}
			if !r.local() {
				r.fields, r.context = textsIn(fields), textsIn(fields["context"])
				r.name = nameIn(r)
			}
			if len(wrapped) > maxWrapped {
				return out, invalid("what it has for %s has more than %d bytes", r, maxWrapped)
			}
			out = append(out, r)
		}
	}
	return out, nil
}

// nameIn returns the name of a key that a service holds, which is an URL where the service is told by one.
func nameIn(r recipient) string {
	switch r.kind {
	case KindVault:
		return strings.TrimSuffix(r.name, "/") + "/v1/" + r.fields["engine_path"] + "/keys/" + r.fields["key_name"]
	case KindAzure:
		return strings.TrimSuffix(r.name, "/") + "/keys/" + r.fields["name"]
	default:
		return r.name
	}
}

// textsIn returns the texts of a map; nil for anything else.
func textsIn(of any) map[string]string {
	fields, _ := of.(map[string]any)
	if len(fields) == 0 {
		return nil
	}
	out := map[string]string{}
	for name, value := range fields {
		if text, is := value.(string); is {
			out[name] = text
		}
	}
	return out
}

// rule says which values are encrypted, by the keys on the way to them.
type rule struct {
	matches   func(key string) bool
	steps     int             // what that takes, for each byte of a key
	known     map[string]bool // keys by whether they match
	encrypted bool            // what is said of a value on whose way a key matches
	byComment bool            // comments decide: what is encrypted is seen from each value alone
}

// defaultSuffix is that of the keys whose values are not encrypted, if a file says nothing else.
const defaultSuffix = "_unencrypted"

func readRule(text func(key string) string) (rule, error) {
	found := rule{matches: suffixed(defaultSuffix), known: map[string]bool{}}
	rules := 0
	for _, known := range []struct {
		key       string
		encrypted bool
	}{
		{"unencrypted_suffix", false}, {"encrypted_suffix", true}, {"unencrypted_regex", false}, {"encrypted_regex", true},
		{"unencrypted_comment_regex", false}, {"encrypted_comment_regex", true},
	} {
		value := text(known.key)
		if value == "" {
			continue
		}
		if rules++; rules > 1 {
			return rule{}, invalid("its metadata has several rules of what is encrypted")
		}
		found.encrypted, found.matches, found.byComment = known.encrypted, suffixed(value), strings.Contains(known.key, "comment")
		if strings.HasSuffix(known.key, "_regex") {
			if err := found.compile(known.key, value); err != nil {
				return rule{}, err
			}
		}
	}
	return found, nil
}

// compile has a rule match by a regular expression, whose repeats are only written out once it is known that they are few.
func (r *rule) compile(field, text string) error {
	if len(text) > maxPattern {
		return invalid("sops.%s has more than %d bytes", field, maxPattern)
	}
	steps, err := pattern.Weigh(text)
	switch {
	case errors.Is(err, pattern.ErrTooLarge):
		return invalid("sops.%s repeats so much that it takes too long: make it shorter", field)
	case err != nil:
		return invalid("sops.%s is no regular expression", field)
	}
	compiled, err := pattern.Compile(text)
	if err != nil {
		return invalid("sops.%s is no regular expression", field)
	}
	r.steps = steps
	r.matches = compiled.MatchString
	return nil
}

func suffixed(suffix string) func(string) bool {
	return func(key string) bool { return strings.HasSuffix(key, suffix) }
}

// encrypts reports whether a value is to be encrypted. What that takes is taken off work, and it fails before that is below
// nothing.
func (r rule) encrypts(l leaf, work *int) (bool, error) {
	if r.byComment {
		return l.isText && sealedValue.MatchString(l.text), nil
	}
	for _, key := range l.path {
		matches, known := r.known[key]
		if !known {
			if *work -= len(key) * r.steps; *work < 0 {
				return false, errWork
			}
			matches = r.matches(key)
			r.known[key] = matches
		}
		if matches {
			return r.encrypted, nil
		}
	}
	return !r.encrypted, nil
}

// maxFlat is how many recipients of a kind a file in a flat format may have; more than maxListed are refused elsewhere.
const maxFlat = 1000

// unflatten brings the metadata of a flat format, such as age__list_0__map_enc, into the form of the others. What it does
// not know it leaves out.
func unflatten(flat map[string]string) map[string]any {
	out := map[string]any{}
	for key, value := range flat {
		name, rest, isList := strings.Cut(key, "__list_")
		if !isList {
			out[key] = value
			continue
		}
		if !slices.ContainsFunc(kinds, func(k kindOf) bool { return k.list == name }) {
			continue // there is no other list, and each is as long as its largest number
		}
		number, field, _ := strings.Cut(rest, "__map_")
		at, err := strconv.Atoi(number)
		if err != nil || at < 0 || at >= maxFlat {
			continue
		}
		list, _ := out[name].([]any)
		for len(list) <= at {
			list = append(list, map[string]any{})
		}
		putField(list[at].(map[string]any), field, value)
		out[name] = list
	}
	return out
}

// putField sets a field of a recipient, or of a map that is one, as context__map_NAME.
func putField(of map[string]any, field, value string) {
	outer, inner, isMap := strings.Cut(field, "__map_")
	if !isMap {
		of[field] = value
		return
	}
	fields, _ := of[outer].(map[string]any)
	if fields == nil {
		fields = map[string]any{}
		of[outer] = fields
	}
	fields[inner] = value
}

// fault is why a file cannot be opened.
type fault struct {
	is   error
	text string
}

// Error implements error.
func (f *fault) Error() string { return f.text }

// Unwrap returns ErrInvalid, ErrNoKey or ErrService.
func (f *fault) Unwrap() error { return f.is }

func invalid(format string, args ...any) error {
	return &fault{ErrInvalid, fmt.Sprintf(format, args...)}
}
