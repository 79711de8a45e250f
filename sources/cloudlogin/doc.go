// Package cloudlogin gets what registries and Git servers of clouds take as a login.
//
// In go the provider of a source, the host of its URL, and the credentials of its Secret; out comes a Login for that host, which is
// kept until shortly before it ends, or an error that shows nothing of a secret or an answer. Credentials go to the provider's own
// servers alone, over TLS, whatever a source or a Secret names, and what they are exchanged for is handed out only for a host of the
// provider's. It reads no Secret, and uses no identity of the machine or the control plane: who may write a source gets no rights but
// those of the Secret.
package cloudlogin
