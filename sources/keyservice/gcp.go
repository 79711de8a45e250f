package keyservice

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"

	"github.com/flotilla-io/flotilla/sources/cloudtoken"
	"github.com/flotilla-io/flotilla/sources/sops"
)

const (
	gcpHost  = "https://cloudkms.googleapis.com"
	gcpScope = "https://www.googleapis.com/auth/cloudkms"
)

var gcpKeys = regexp.MustCompile(`^projects/[A-Za-z0-9:._-]+/locations/[a-z0-9-]+/keyRings/[A-Za-z0-9_-]+/cryptoKeys/[A-Za-z0-9_-]+$`)

// askGCP has a key opened by GCP KMS.
func (a *account) askGCP(ctx context.Context, of sops.Recipient) ([]byte, error) {
	id := of.Fields["resource_id"]
	if !gcpKeys.MatchString(id) {
		return nil, wrong("sops.gcp_kms.resource_id is no projects/…/locations/…/keyRings/…/cryptoKeys/…")
	}
	if _, err := base64.StdEncoding.DecodeString(of.Wrapped); err != nil {
		return nil, wrong("sops.gcp_kms.enc is not what SOPS writes")
	}
	token, err := a.gcpToken(ctx)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(map[string]string{"ciphertext": of.Wrapped})
	if err != nil {
		return nil, wrong("its key is no text")
	}
	req, err := post(ctx, gcpHost+"/v1/"+id+":decrypt", asJSON, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	said, err := a.ask(ctx, sops.KindGCP, req)
	if err != nil {
		return nil, err
	}
	switch said.status {
	case http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden:
		return nil, refused("GCP KMS refuses (HTTP %d): let the service account of %s decrypt with the key (roles/cloudkms.cryptoKeyDecrypter)", said.status, gcpKMS)
	case http.StatusNotFound:
		return nil, refused("GCP KMS has no such key (HTTP %d)", said.status)
	default:
		return nil, refused("GCP KMS does not open it (HTTP %d): it was encrypted for another key, or its version is disabled", said.status)
	}
	var answer struct {
		Plaintext string `json:"plaintext"`
	}
	if json.Unmarshal(said.body, &answer) != nil {
		return nil, refused("the answer of GCP KMS makes no sense")
	}
	return decode(base64.StdEncoding, sops.KindGCP, answer.Plaintext)
}

// gcpToken returns a token for the service account of the Secret.
func (a *account) gcpToken(ctx context.Context) (string, error) {
	return a.token(ctx, "Google", gcpKMS, func() (cloudtoken.Login, error) { return cloudtoken.ParseGoogle(a.secret[gcpKMS], gcpScope) })
}

// token returns a token for what is in a key of the Secret, which is asked for once.
func (a *account) token(ctx context.Context, of, in string, login func() (cloudtoken.Login, error)) (string, error) {
	if err := a.away[of]; err != nil {
		return "", err
	}
	source, found := a.tokens[of]
	if !found {
		by, err := login()
		if err != nil {
			return "", refused("%s of the Secret: %v", in, err)
		}
		source = cloudtoken.NewSource(by, a.services.client, a.services.opts.Clock)
		a.tokens[of] = source
	}
	ctx, cancel := context.WithTimeout(ctx, a.services.opts.Timeout)
	defer cancel()
	token, err := source.Token(ctx)
	switch {
	case errors.Is(err, cloudtoken.ErrRefused):
		err = refused("%v: correct %s, or make a new key there", err, in)
	case err != nil:
		err = refused("%v", err)
	}
	a.away[of] = err
	return token, err
}
