package sops_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"github.com/flotilla-io/flotilla/sources/sops"
)

// TestFilesThatTakeTooMuch: what a file asks for is bounded before it is done.
func TestFilesThatTakeTooMuch(t *testing.T) {
	ruled := func(pattern string) func(string) string {
		return replaced("^(data|stringData)$", pattern)
	}
	recipients := func(n int, enc string) func(string) string {
		return replaced("\n  age:\n", "\n  age:\n"+strings.Repeat("    - recipient: age1x\n      enc: "+enc+"\n", n))
	}
	keys := func(n, length int) func(string) string {
		return func(text string) string {
			var out strings.Builder
			for i := range n {
				fmt.Fprintf(&out, "k%d%s: x\n", i, strings.Repeat("k", length))
			}
			return out.String() + text
		}
	}
	both := func(changes ...func(string) string) func(string) string {
		return func(text string) string {
			for _, change := range changes {
				text = change(text)
			}
			return text
		}
	}
	cases := map[string]struct {
		file   string
		change func(string) string
		want   string
	}{
		"a long regular expression":     {"secret.yaml", ruled(strings.Repeat("a", 1001)), "sops.encrypted_regex has more than 1000 bytes"},
		"one that repeats":              {"secret.yaml", ruled("'(.?){1000}(.?){1000}'"), "sops.encrypted_regex repeats so much that it takes too long: make it shorter"},
		"one that repeats what repeats": {"secret.yaml", ruled("'((.{10}){10}){10}x{1000,}y{0,1000}'"), "sops.encrypted_regex repeats so much that it takes too long: make it shorter"},
		"a regular expression for comments": {"comment-regex.yaml", func(text string) string {
			return strings.Replace(text, "encrypted_comment_regex: ", "encrypted_comment_regex: '(.?){1000}(.?){1000}' #", 1)
		}, "sops.encrypted_comment_regex repeats so much that it takes too long: make it shorter"},
		"one for keys that are long":      {"secret.yaml", both(ruled("'(.?){300}Z'"), keys(1900, 1000)), "it would take too long to open, as its keys are long and many: split it"},
		"values below a key that is long": {"secret.json", replaced("{", `{"`+strings.Repeat("k", 1<<20)+`": [`+strings.Repeat("1, ", 1000)+"1],"), "it would take too long to open, as its keys are long and many: split it"},
		"many recipients":                 {"secret.yaml", recipients(101, "x"), "it is encrypted for more than 100 recipients of one kind"},
		"a recipient with a long key":     {"secret.yaml", recipients(1, strings.Repeat("x", 9000)), "what it has for age1x has more than 8192 bytes"},
		"values that are nested": {"secret.yaml", func(text string) string {
			return "a: " + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + "\n" + text
		}, "its values are nested more than 100 deep"},
		"objects that are nested": {"secret.json", replaced("{", "{"+strings.Repeat(`"a":{`, 2000)+`"b":1`+strings.Repeat("}", 2000)+","), "its values are nested more than 100 deep"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			content := tc.change(string(file(t, tc.file)))
			if content == string(file(t, tc.file)) {
				t.Fatal("nothing was changed")
			}
			if _, err := open(t, []byte(content), keysOf(t, "key.agekey", "key.asc")); !errors.Is(err, sops.ErrInvalid) || err.Error() != tc.want {
				t.Errorf("error %.200v, want %s", err, tc.want)
			}
			if sealed, _ := sops.Read([]byte(content)); sealed != nil && sealed.Recipients() == "" {
				t.Error("nobody is named")
			}
		})
	}
}

// TestRecipientsAreTried only so often, in all parts of a file.
func TestRecipientsAreTried(t *testing.T) {
	others := strings.Repeat("    - recipient: age1x\n      enc: x\n", 90)
	one := strings.Replace(string(file(t, "secret.yaml")), "\n  age:\n", "\n  age:\n"+others, 1)
	// What has another text for the same hash is a part of its own: the last bits of base64 say nothing.
	before, mac, _ := strings.Cut(one, "mac: ")
	at := strings.Index(mac, "==,type:str]") - 1
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	first := strings.IndexByte(alphabet, mac[at]) &^ 15
	var parts []string
	for i := range 16 {
		parts = append(parts, before+"mac: "+mac[:at]+alphabet[first+i:first+i+1]+mac[at+1:])
	}
	for n, want := range map[int]string{10: "", 16: "it has more recipients than are tried, 1000 in all its documents: split it"} {
		_, err := open(t, []byte(strings.Join(parts[:n], "---\n")), keysOf(t, "key.agekey"))
		if want == "" && err != nil || want != "" && (!errors.Is(err, sops.ErrInvalid) || err.Error() != want) {
			t.Errorf("%d parts: error %v, want %q", n, err, want)
		}
	}
}

// TestKeysInOneMessage: OpenPGP allows any number of keys in what is for one recipient, and each is tried.
func TestKeysInOneMessage(t *testing.T) {
	text := string(file(t, "secret-pgp.yaml"))
	before, rest, _ := strings.Cut(text, "        -----BEGIN PGP MESSAGE-----")
	message, after, _ := strings.Cut(rest, "        -----END PGP MESSAGE-----")
	block, err := armor.Decode(strings.NewReader(strings.ReplaceAll("        -----BEGIN PGP MESSAGE-----"+message+"        -----END PGP MESSAGE-----", "        ", "")))
	if err != nil {
		t.Fatal(err)
	}
	packets := packet.NewOpaqueReader(block.Body)
	first, err := packets.Next()
	if err != nil {
		t.Fatal(err)
	}
	second, err := packets.Next()
	if err != nil {
		t.Fatal(err)
	}
	for n, opens := range map[int]bool{1: true, 4: true, 5: false} {
		var out strings.Builder
		w, err := armor.Encode(&out, "PGP MESSAGE", nil)
		if err != nil {
			t.Fatal(err)
		}
		for range n {
			if err := first.Serialize(w); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(second.Serialize(w), w.Close()); err != nil {
			t.Fatal(err)
		}
		changed := before + "        " + strings.ReplaceAll(out.String(), "\n", "\n        ") + after
		_, err = open(t, []byte(changed), keysOf(t, "key.asc"))
		if opens && err != nil || !opens && !errors.Is(err, sops.ErrNoKey) {
			t.Errorf("%d keys: error %v", n, err)
		}
	}
}

// TestOpenEndsWithItsContext, also where nothing is wrong.
func TestOpenEndsWithItsContext(t *testing.T) {
	sealed, err := sops.Read(file(t, "secret.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	plain, err := sealed.Open(ctx, keysOf(t, "key.agekey"))
	if !errors.Is(err, context.Canceled) || plain.Content != nil {
		t.Errorf("error %v, content %q", err, plain.Content)
	}
}

// TestLongListsInFlatFormats: metadata in a flat format has no list but those of recipients.
func TestLongListsInFlatFormats(t *testing.T) {
	var lists strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&lists, "sops_x%d__list_999__map_x=y\n", i)
	}
	content := []byte(lists.String() + string(file(t, "vars.env")))
	allocated := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if sealed, err := sops.Read(content); err != nil || sealed == nil {
				b.Fatalf("error %v", err)
			}
		}
	}).AllocedBytesPerOp()
	if allocated > 100<<20 {
		t.Errorf("%d bytes of memory for a file of %d", allocated, len(content))
	}
}
