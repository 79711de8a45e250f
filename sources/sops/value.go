package sops

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// leaf is a value of a file.
type leaf struct {
	// path are the keys on the way to it; an entry of a list adds none.
	path []string
	// text is the value where it is a text.
	text   string
	isText bool
	// covered is what the hash of the file covers of the value, if it is not encrypted.
	covered []byte
	// set puts what a value holds into its place.
	set func(v value) error
}

// at names a value for people.
func (l leaf) at() string { return clip(strings.Join(l.path, ".")) }

// value is what was encrypted.
type value struct {
	kind valueKind
	text string
}

type valueKind string

const (
	kindText    valueKind = "str"
	kindBytes   valueKind = "bytes"
	kindInt     valueKind = "int"
	kindFloat   valueKind = "float"
	kindBool    valueKind = "bool"
	kindTime    valueKind = "time"
	kindComment valueKind = "comment"
)

// sealedValue is how an encrypted value is written.
var sealedValue = regexp.MustCompile(`^ENC\[AES256_GCM,data:([A-Za-z0-9+/=]*),iv:([A-Za-z0-9+/=]+),tag:([A-Za-z0-9+/=]+),type:([a-z]+)\]$`)

var (
	errForm = errors.New("it is not what SOPS writes")
	errTag  = errors.New("its authentication tag does not match")
)

// decrypt returns what a value holds. The value is bound to its place by bound.
func decrypt(text string, key []byte, bound string) (value, error) {
	match := sealedValue.FindStringSubmatch(text)
	if match == nil {
		return value{}, errForm
	}
	var parts [3][]byte
	for i := range parts {
		var err error
		if parts[i], err = base64.StdEncoding.DecodeString(match[i+1]); err != nil {
			return value{}, errForm
		}
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return value{}, errForm
	}
	gcm, err := cipher.NewGCMWithNonceSize(block, len(parts[1]))
	if err != nil {
		return value{}, errForm
	}
	plain, err := gcm.Open(nil, parts[1], append(parts[0], parts[2]...), []byte(bound))
	if err != nil {
		return value{}, errTag
	}
	v := value{kind: valueKind(match[4]), text: string(plain)}
	if !v.sound() {
		return value{}, errForm
	}
	return v, nil
}

// sound reports whether the text of a value is one of its kind.
func (v value) sound() bool {
	switch v.kind {
	case kindText, kindBytes, kindComment:
		return true
	case kindInt:
		_, err := strconv.ParseInt(v.text, 10, 64)
		return err == nil
	case kindFloat:
		f, err := strconv.ParseFloat(v.text, 64)
		return err == nil && !math.IsInf(f, 0) && !math.IsNaN(f)
	case kindBool:
		return v.text == "True" || v.text == "False"
	case kindTime:
		_, err := time.Parse(time.RFC3339Nano, v.text)
		return err == nil
	default:
		return false
	}
}

// written returns the text of a value that is no string, as YAML and JSON have it.
func (v value) written() string {
	switch v.kind {
	case kindBool:
		return strings.ToLower(v.text)
	case kindFloat:
		f, _ := strconv.ParseFloat(v.text, 64) // sound has read it
		return strconv.FormatFloat(f, 'g', -1, 64)
	default:
		return v.text
	}
}

// covers returns what the hash of a file covers of a value that is not encrypted; false for a kind that none has.
func covers(of any) ([]byte, bool) {
	switch of := of.(type) {
	case string:
		return []byte(of), true
	case int:
		return strconv.AppendInt(nil, int64(of), 10), true
	case float64:
		return strconv.AppendFloat(nil, of, 'f', -1, 64), true
	case bool:
		if of {
			return []byte("True"), true
		}
		return []byte("False"), true
	case time.Time:
		text, err := of.MarshalText()
		return text, err == nil
	default:
		return nil, false
	}
}
