package sops_test

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/sources/sops"
)

// service opens what e2e/sops wrote for Vault, unless it has an error.
type service struct {
	err   error
	key   []byte // in place of the right one
	asked []sops.Recipient
}

// Unwrap implements sops.Service.
func (s *service) Unwrap(_ context.Context, of sops.Recipient) ([]byte, error) {
	s.asked = append(s.asked, of)
	if s.err != nil || s.key != nil {
		return s.key, s.err
	}
	return base64.StdEncoding.DecodeString(strings.TrimPrefix(of.Wrapped, "vault:v1:"))
}

// said is an error of a service, with its class.
type said struct {
	error
	text string
}

// Error implements error.
func (s said) Error() string { return s.text }

// Unwrap returns the class.
func (s said) Unwrap() error { return s.error }

// TestServices are asked where no key of the Secret opens a file, and what they say counts where it says more than that one is missing.
func TestServices(t *testing.T) {
	const (
		inVault = "\n  hc_vault:\n    - created_at: \"2026-12-01T15:10:53Z\"\n      enc: vault:v1:a2V5\n      engine_path: sops\n      key_name: k\n      vault_address: https://v.test\n"
		inAge   = "\n  age:\n    - recipient: age1other\n      enc: x\n"
		name    = "it is encrypted for Vault https://vault.example.com:8200/v1/teams/shop/keys/flux: "
	)
	refused, missing, never := said{sops.ErrService, "no"}, said{sops.ErrNoKey, "no token"}, said{sops.ErrInvalid, "never"}
	for title, tc := range map[string]struct {
		file  string
		add   string
		by    service
		is    error
		want  string
		asked int
	}{
		"a key of a service":                          {file: "vault.yaml", asked: 1},
		"one that the Secret has a key for, too":      {file: "secret.yaml", add: inVault},
		"a service that refuses":                      {file: "vault.yaml", by: service{err: refused}, is: sops.ErrService, want: name + "no", asked: 1},
		"one without credentials":                     {file: "vault.yaml", by: service{err: missing}, is: sops.ErrService, want: name + "no token", asked: 1},
		"one that is never asked":                     {file: "vault.yaml", by: service{err: never}, is: sops.ErrInvalid, want: name + "never", asked: 1},
		"a key that is none":                          {file: "vault.yaml", by: service{key: []byte("short")}, is: sops.ErrService, want: name + "what it answers is no key of a file", asked: 1},
		"another key":                                 {file: "vault.yaml", by: service{key: make([]byte, 32)}, is: sops.ErrInvalid, want: "stringData.user was changed after it was encrypted: its authentication tag does not match; change such files with sops alone", asked: 1},
		"one that refuses, and a key that is missing": {file: "vault.yaml", add: inAge, by: service{err: refused}, is: sops.ErrService, want: name + "no", asked: 1},
		"no credentials, and a key that is missing":   {file: "vault.yaml", add: inAge, by: service{err: missing}, is: sops.ErrNoKey, want: "it is encrypted for age1other, Vault https://vault.example.com:8200/v1/teams/shop/keys/flux", asked: 1},
	} {
		t.Run(title, func(t *testing.T) {
			content := string(file(t, tc.file))
			if tc.add != "" {
				content = strings.Replace(content, "\n  lastmodified:", tc.add+"  lastmodified:", 1)
			}
			keys := keysOf(t, "key.agekey")
			keys.Serve(&tc.by)
			plain, err := open(t, []byte(content), keys)
			switch {
			case tc.want == "" && (err != nil || !strings.Contains(string(plain.Content), "shop")):
				t.Errorf("error %v, it holds\n%s", err, plain.Content)
			case tc.want != "" && (!errors.Is(err, tc.is) || err.Error() != tc.want):
				t.Errorf("error %v\nwant  %s", err, tc.want)
			}
			if len(tc.by.asked) != tc.asked {
				t.Errorf("asked for %+v", tc.by.asked)
			}
		})
	}
}

// TestWhatServicesAreAsked is what a file says of a key.
func TestWhatServicesAreAsked(t *testing.T) {
	for _, name := range []string{"aws.yaml", "aws.env"} {
		by := &service{err: sops.ErrService}
		keys := keysOf(t, "key.agekey")
		keys.Serve(by)
		if _, err := open(t, file(t, name), keys); !errors.Is(err, sops.ErrService) {
			t.Error(err)
		}
		for i := range by.asked {
			by.asked[i].Wrapped = ""
			delete(by.asked[i].Fields, "enc")
			delete(by.asked[i].Fields, "created_at")
		}
		want := []sops.Recipient{{Kind: sops.KindAWS, Fields: map[string]string{"arn": "arn:aws:kms:eu-west-1:111122223333:key/9b1d", "aws_profile": ""}, Context: map[string]string{"team": "shop"}}}
		if diff := cmp.Diff(want, by.asked); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
