package keyservice

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/flotilla-io/flotilla/sources/sigv4"
	"github.com/flotilla-io/flotilla/sources/sops"
)

// arns are those of keys, with the partition and the region.
var arns = regexp.MustCompile(`^arn:(aws|aws-cn|aws-us-gov):kms:([a-z]{2}(?:-[a-z]+)+-[0-9]):[0-9]{12}:(?:key|alias)/[A-Za-z0-9/_-]+$`)

// kmsHost returns the host of AWS KMS in a region.
func kmsHost(partition, region string) string {
	if partition == "aws-cn" {
		return "kms." + region + ".amazonaws.com.cn"
	}
	return "kms." + region + ".amazonaws.com"
}

// awsKeys reads the credentials of AWS: YAML, as the library of SOPS has its own.
func awsKeys(text []byte) (sigv4.Keys, error) {
	var read struct {
		ID     string `json:"aws_access_key_id"`
		Secret string `json:"aws_secret_access_key"`
		Token  string `json:"aws_session_token"`
	}
	if yaml.Unmarshal(text, &read) != nil || !plain(read.ID) || strings.Contains(read.ID, "/") || read.Secret == "" || read.Token != "" && !plain(read.Token) {
		return sigv4.Keys{}, refused("%s has to be YAML with aws_access_key_id and aws_secret_access_key, and perhaps aws_session_token", awsKMS)
	}
	return sigv4.Keys{ID: read.ID, Secret: read.Secret, Token: read.Token}, nil
}

// plain reports whether a text can be in a header.
func plain(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// askAWS has a key opened by AWS KMS.
func (a *account) askAWS(ctx context.Context, of sops.Recipient) ([]byte, error) {
	arn := arns.FindStringSubmatch(of.Fields["arn"])
	switch {
	case arn == nil:
		return nil, wrong("sops.kms.arn is no ARN of a key")
	case of.Fields["role"] != "":
		return nil, wrong("it is to be opened as the role of sops.kms.role, which is not supported: leave the role out, and let the user of %s decrypt", awsKMS)
	}
	if _, err := base64.StdEncoding.DecodeString(of.Wrapped); err != nil {
		return nil, wrong("sops.kms.enc is not what SOPS writes")
	}
	keys, err := awsKeys(a.secret[awsKMS])
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(struct {
		CiphertextBlob    string
		EncryptionContext map[string]string `json:",omitempty"`
	}{of.Wrapped, of.Context})
	if err != nil {
		return nil, wrong("sops.kms.context is no text")
	}
	req, err := post(ctx, "https://"+kmsHost(arn[1], arn[2])+"/", "application/x-amz-json-1.1", body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Amz-Target", "TrentService.Decrypt")
	sigv4.Sign(req, body, keys, sigv4.Scope{Region: arn[2], Service: "kms"}, a.services.opts.Clock.Now())
	said, err := a.ask(ctx, sops.KindAWS, req)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Plaintext string
		Type      string `json:"__type"`
	}
	if json.Unmarshal(said.body, &answer) != nil {
		return nil, refused("the answer of AWS KMS makes no sense (HTTP %d)", said.status)
	}
	if said.status != http.StatusOK {
		return nil, awsRefusal(said.status, answer.Type)
	}
	return decode(base64.StdEncoding, sops.KindAWS, answer.Plaintext)
}

// awsRefusals are the errors of AWS KMS that are known, and what is to be done.
var awsRefusals = map[string]string{
	"AccessDeniedException":       "let the user of " + awsKMS + " do kms:Decrypt with the key",
	"UnrecognizedClientException": "the key or the session in " + awsKMS + " is not valid: correct it",
	"InvalidSignatureException":   "aws_secret_access_key in " + awsKMS + " is not that of aws_access_key_id: correct it",
	"ExpiredTokenException":       "aws_session_token in " + awsKMS + " has ended: put a new one there",
	"InvalidCiphertextException":  "it was encrypted for another key, or with another context",
	"IncorrectKeyException":       "it was encrypted for another key",
	"NotFoundException":           "the key does not exist",
	"DisabledException":           "the key is disabled",
	"KMSInvalidStateException":    "the key is disabled, or about to be deleted",
}

func awsRefusal(status int, kind string) error {
	kind = kind[strings.LastIndex(kind, "#")+1:] // of com.amazonaws.kms#Name
	if why, known := awsRefusals[kind]; known {
		return refused("AWS KMS refuses (%s): %s", kind, why)
	}
	return refused("AWS KMS refuses (HTTP %d)", status)
}
