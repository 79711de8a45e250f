package sops

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Errors of a file.
var (
	// ErrInvalid means that a file was changed after it was encrypted, or is none that can be opened.
	ErrInvalid = errors.New("invalid encrypted file")
	// ErrNoKey means that none of the keys is for the file: others may be.
	ErrNoKey = errors.New("no key for an encrypted file")
)

// maxSize is how large an encrypted file may be, in bytes: all of it is in memory several times.
const maxSize = 2 << 20

// about is how metadata begins in a file, whatever its format.
var about = regexp.MustCompile(`(?m)^(sops:|[ \t]*"sops"[ \t]*:|\[sops\]|sops_mac=)`)

// Plain is what an encrypted file holds.
type Plain struct {
	// Content is the file as it was before it was encrypted, in the same format.
	Content []byte
	// Data is what a file of any other format holds, around which Content is JSON; nil for none.
	Data []byte
	// Values are the values that were encrypted.
	Values []string
}

// File is an encrypted file. Use Read.
type File struct {
	parts []part
	// encode returns the file without its metadata, and data what it holds if it is of no format.
	encode func() ([]byte, error)
	data   func() []byte
}

// part is what one hash covers: a file, or some documents of it.
type part struct {
	raw    map[string]any
	leaves []leaf
}

// mark is in all encrypted files.
var mark = []byte("ENC[AES256_GCM,")

// formats read files. Each returns nil for what is not in its format or not encrypted.
var formats = []func(content []byte) (*File, error){readJSON, readYAML, readDotenv, readINI}

// Read reads a file that is encrypted; nil for one that is not. Errors: ErrInvalid.
func Read(content []byte) (*File, error) {
	if !bytes.Contains(content, mark) {
		return nil, nil
	}
	if len(content) > maxSize {
		if about.Match(content) {
			return nil, invalid("it is encrypted and has more than %d bytes: split it", maxSize)
		}
		return nil, nil
	}
	for _, read := range formats {
		if file, err := read(content); file != nil || err != nil {
			return file, err
		}
	}
	return nil, nil
}

// Recipients lists whom a file is encrypted for, for people.
func (f *File) Recipients() string {
	recipients, _ := readRecipients(f.parts[0].raw) // what is wrong with them is told when it is opened
	return metadata{recipients: recipients}.named()
}

// Open opens a file. It can be opened once. When ctx ends, so does it. Errors: ErrInvalid, ErrNoKey, ErrService, and that of ctx.
func (f *File) Open(ctx context.Context, keys *Keys) (Plain, error) {
	o := &opening{keys: keys, work: maxWork, tries: maxTried}
	for _, p := range f.parts {
		m, err := readMetadata(p.raw)
		if err != nil {
			return Plain{}, err
		}
		key, err := o.unwrap(ctx, m)
		if err != nil {
			return Plain{}, err
		}
		if err := o.part(ctx, p, m, key); err != nil {
			return Plain{}, err
		}
	}
	return o.out, f.write(&o.out)
}

func (f *File) write(out *Plain) (err error) {
	if out.Content, err = f.encode(); err == nil && f.data != nil {
		out.Data = f.data()
	}
	return err
}

// noKey says what is missing to open a file.
func noKey(m metadata) error {
	if m.hasLocal() {
		return &fault{ErrNoKey, fmt.Sprintf("it is encrypted for %s", m.named())}
	}
	return invalid("it is encrypted for %s, of which none is an age or PGP key: add one with sops updatekeys", m.named())
}

// part decrypts the values of a part, and checks its hash.
func (o *opening) part(ctx context.Context, p part, m metadata, key []byte) error {
	hash := sha512.New()
	if m.onlyEncrypted { // so that such a hash is none of all values
		seed := sha256.Sum256([]byte("sops"))
		hash.Write(seed[:])
	}
	for _, l := range p.leaves {
		if err := o.walk(ctx, l); err != nil {
			return err
		}
		encrypted, err := m.rule.encrypts(l, &o.work)
		if err != nil {
			return err
		}
		if !encrypted {
			if !m.onlyEncrypted {
				hash.Write(l.covered)
			}
			continue
		}
		if l.isText && l.text == "" { // SOPS leaves it as it is
			continue
		}
		if !l.isText {
			return invalid("%s was changed after it was encrypted: it is no encrypted text", l.at())
		}
		v, err := decrypt(l.text, key, strings.Join(l.path, ":")+":")
		if err != nil {
			return invalid("%s was changed after it was encrypted: %v; change such files with sops alone", l.at(), err)
		}
		if v.kind != kindComment {
			hash.Write([]byte(v.text))
			if secret(l.path) && v.kind != kindBool {
				o.out.Values = append(o.out.Values, v.text)
				if written := v.written(); written != v.text {
					o.out.Values = append(o.out.Values, written)
				}
			}
		}
		if err := l.set(v); err != nil {
			return err
		}
	}
	return checkHash(m, key, fmt.Sprintf("%X", hash.Sum(nil)))
}

func checkHash(m metadata, key []byte, is string) error {
	if m.mac == "" {
		return invalid("it has no MAC: encrypt it anew with sops")
	}
	was, err := decrypt(m.mac, key, m.modified)
	if err != nil {
		return invalid("its MAC was changed after it was encrypted: %v; change such files with sops alone", err)
	}
	if was.text != is {
		return invalid("it was changed after it was encrypted: its MAC does not match; change such files with sops alone")
	}
	return nil
}

// known are the fields that say what an object is and what it is called: they are no secrets, even if all of a file is
// encrypted.
var known = map[string]bool{"apiVersion": true, "kind": true, "metadata.name": true, "metadata.namespace": true}

// secret reports whether a value is one to hide.
func secret(path []string) bool { return !known[strings.Join(path, ".")] }

// Standing returns the file with stand-ins for what is encrypted, which need no key. A text is StandIn.
func (f *File) Standing() (Plain, error) {
	var out Plain
	for _, p := range f.parts {
		for _, l := range p.leaves {
			match := sealedValue.FindStringSubmatch(l.text)
			if !l.isText || match == nil {
				continue
			}
			v := value{kind: valueKind(match[4]), text: StandIn}
			switch v.kind {
			case kindInt, kindFloat:
				v.text = "1"
			case kindBool:
				v.text = "True"
			case kindTime:
				v.text = "2000-01-01T00:00:00Z"
			}
			if err := l.set(v); err != nil {
				return Plain{}, err
			}
		}
	}
	return out, f.write(&out)
}

// StandIn stands for an encrypted text. It is also sound base64, as the data of Secrets has to be.
const StandIn = "withheld"
