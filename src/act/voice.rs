//! The voice: words to sound, sentence by sentence.
