// Package cloudtoken gets tokens for the interfaces of Google's and Azure's clouds.
//
// In go the key of a service account, or how an application logs in, as a Secret has it, and what the token is for; out comes a token
// that has not ended, or an error that shows none of it. Tokens are asked for at the cloud's own servers, whatever a Secret names, by
// the client that is given. It reads no file and no Secret, and never asks for an identity of the machine.
package cloudtoken
