package privatekey_test

import (
	"bytes"
	"testing"

	"github.com/flotilla-io/flotilla/internal/privatekey"
)

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"nothing":                   {privatekey.CheckText(nil), ""},
		"a key of 8,192 bits":       {privatekey.CheckText(bytes.Repeat([]byte("k"), 6600)), ""},
		"one of 16,384":             {privatekey.CheckText(bytes.Repeat([]byte("k"), 13_000)), "a private key of more than 8192 bytes is not read: use one of at most 8192 bits"},
		"as many bits as may be":    {privatekey.CheckBits(8192), ""},
		"more bits than are in use": {privatekey.CheckBits(8193), "an RSA key of more than 8192 bits is not used"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if tc.err != nil {
				got = tc.err.Error()
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
